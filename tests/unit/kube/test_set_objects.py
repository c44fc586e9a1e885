"""What stays of a live object when a set of objects is written."""

from typing import Any

import pytest

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


def entry(manager: str, *labels: str, subresource: str = "") -> Object:
    fields: Object = {"f:metadata": {"f:labels": {f"f:{each}": {} for each in labels}}}
    return {"manager": manager, "operation": "Update", "subresource": subresource, "fieldsV1": fields}


@pytest.mark.parametrize(
    ("managed", "kept"),
    [
        ([entry("gardenlet", "a", "b")], set()),
        ([entry("gardenlet", "a"), entry("user", "b")], {"b"}),
        ([entry("gardenlet", "a", "b"), entry("user", "b")], {"b"}),
        ([entry("gardenlet", "a"), entry("controller", "b", subresource="status")], {"b"}),
        ([entry("user")], set()),
        ([], {"a", "b"}),
    ],
    ids=["ours", "of a user", "shared", "set with the status", "without an owner", "unknown owners"],
)
def test_labels_stay_that_other_clients_have_set(managed: list[Object], kept: set[str]) -> None:
    live = {**KIND, "metadata": {"name": "a", "labels": {"a": "1", "b": "1"}, "managedFields": managed}}
    found = merged({**KIND, "metadata": {"name": "a", "labels": {"own": "1"}}}, live, field_manager="gardenlet")
    assert found["metadata"]["labels"].keys() == {"own", *kept}
