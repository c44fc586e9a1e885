"""What the API server's version of Kubernetes does not know is reported, whichever version that is.

`make matrix` runs this on several, and shows what each does not know. The newest knows all of it, but for one kind.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.objects import CONTAINERS, config_map, deployment, obj, service
from kit.rig import Rig
from kit.versions import minor_version
from kube.objects import Object
from matrix import LACKS

RecordProperty = Callable[[str, object], None]


@dataclass(frozen=True, slots=True)
class Newer:
    """A field that is younger than some versions of Kubernetes, in the object that has it."""

    path: str
    obj: Object
    since: int
    """The minor version from which on it is stored, without a feature gate."""


def _pod(**spec: Any) -> Object:
    return deployment("x", pod={"containers": CONTAINERS, **spec})


def _job() -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}
    policy = {"rules": [{"succeededCount": 1}]}
    return obj("batch/v1 Job", "x", spec={"completionMode": "Indexed", "template": template, "successPolicy": policy})


_SIDECAR = {"name": "s", "image": "i", "restartPolicy": "Always"}
_POD = "spec.template.spec"
FIELDS = [
    Newer(f"{_POD}.initContainers[0].restartPolicy", _pod(initContainers=[_SIDECAR]), since=29),
    Newer(
        f"{_POD}.securityContext.appArmorProfile",
        _pod(securityContext={"appArmorProfile": {"type": "RuntimeDefault"}}),
        since=30,
    ),
    Newer("spec.successPolicy", _job(), since=31),
    Newer("spec.trafficDistribution", service("x", trafficDistribution="PreferClose"), since=31),
    Newer(f"{_POD}.resources", _pod(resources={"requests": {"cpu": "1"}}), since=34),
]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_a_field_that_is_too_new_is_named_and_is_no_drift(
    field: Newer, rig: Rig, audit: Audit, record_property: RecordProperty
) -> None:
    mark = audit.mark()
    rig.apply("mr", field.obj)
    is_too_new = minor_version(rig.cluster) < field.since
    assert (f'field "{field.path}' in rig.applied("mr")[2]) is is_too_new
    if is_too_new:
        record_property(LACKS, field.path.removeprefix("spec.template."))
        rig.until(lambda: rig.events("mr"), "an Event")
    # What comes later shows that what came before was looked at.
    rig.apply("later", config_map("later"))
    calls = audit.calls(since=mark, namespace=rig.namespace, verbs=("create", "update", "patch", "delete"))
    of_agent = [call for call in calls if call.user == rig.agent.user and call.status < 400]
    written = [call.verb for call in of_agent if call.resource in ("deployments", "jobs", "services")]
    assert written == ["create"]
    assert rig.events("mr", event_type="Normal") == []


KINDS = (
    ("batch/v1", "Workload"),  # which no version has
    ("networking.k8s.io/v1", "ServiceCIDR"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"),
)


def _is_served(cluster: Cluster, api_version: str, kind: str) -> bool:
    status, _ = cluster.api.raw("GET", f"/apis/{api_version}")
    return status == 200 and kind in {each["kind"] for each in cluster.api.get(f"/apis/{api_version}")["resources"]}


def test_of_a_kind_of_kubernetes_that_is_too_new_no_definition_is_requested(
    rig: Rig, record_property: RecordProperty
) -> None:
    lacking = [named for named in KINDS if not _is_served(rig.cluster, *named)]
    for api_version, kind in lacking[1:]:
        record_property(LACKS, f"{api_version} {kind}")
    rig.write("mr", *(obj(f"{api_version} {kind}", "x") for api_version, kind in lacking))
    warnings = [
        f'no matches for kind "{kind}" in version "{api_version}"; this version of Kubernetes does not serve it'
        for api_version, kind in lacking
    ]
    message = rig.until_failed("mr", *warnings)
    assert "CustomResourceDefinition" not in message
