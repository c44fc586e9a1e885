"""What stays of a live object when a set of objects is written."""

from typing import Any

from kube.apply.object_sets import merged
from kube.objects import Object

KIND = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler"}
REQUIREMENTS = [{"resources": ["cpu"], "changeRequirement": "TargetHigherThanRequests"}]


def autoscaler(**policy: Any) -> Object:
    return {**KIND, "metadata": {"name": "a"}, "spec": {"updatePolicy": policy}}


def test_eviction_requirements_stay_unless_a_manifest_has_its_own() -> None:
    live = autoscaler(updateMode="Off", evictionRequirements=REQUIREMENTS)
    for own, expected in ((None, REQUIREMENTS), ([], [])):
        wanted = autoscaler(updateMode="Auto", **({} if own is None else {"evictionRequirements": own}))
        found = merged(wanted, live, field_manager="gardenlet")["spec"]["updatePolicy"]
        assert found == {"updateMode": "Auto", "evictionRequirements": expected}
