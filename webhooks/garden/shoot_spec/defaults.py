"""Defaults of a Shoot that depend on the Shoot alone.

Constant defaults are in the schema; these depend on other fields, or apply only with workers.
"""

import random
from math import ceil, log2

from gardener.api.garden import CLOUD_PROFILES
from gardener.garden.versions import Version
from kube.clock import parse_duration
from kube.objects import Object, mapping, text
from kube.paths import at
from webhooks.garden.common.tolerations import tolerate_protection
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import PODS_OF_KUBELET, ip_families, kubernetes_version, workers_of
from webhooks.generic import copied
from webhooks.rules.shapes import child, items

GARDEN = "garden"
_MOST_PODS = 1 << 20
_LONG_GRACE = "2m0s"
"""Default before Kubernetes 1.27 for the time in which unresponsive nodes count as ready."""
_ADDONS = {"addons": {"kubernetesDashboard": {"enabled": False, "authenticationMode": "token"}}}
_WITH_WORKERS = {
    "kubernetes": {
        "kubeAPIServer": {"defaultNotReadyTolerationSeconds": 300, "defaultUnreachableTolerationSeconds": 300},
        "kubeControllerManager": {},
        "kubeProxy": {"mode": "IPTables", "enabled": True},
        "kubeScheduler": {"profile": "balanced"},
        "kubelet": {
            "failSwapOn": True,
            "imageGCHighThresholdPercent": 50,
            "imageGCLowThresholdPercent": 40,
            "kubeReserved": {"cpu": "80m", "memory": "1Gi", "pid": "20k"},
            "serializeImagePulls": True,
        },
    },
    "provider": {"workersSettings": {"sshAccess": {"enabled": True}}},
    "systemComponents": {"coreDNS": {"autoscaling": {"mode": "horizontal"}}},
}


def set_defaults(write: Write) -> None:
    spec = write.own_spec()
    kubernetes = child(spec, "kubernetes")
    child(kubernetes, "kubeAPIServer")
    child(spec, "networking")
    _set_maintenance(write, spec)
    if write.namespace == GARDEN:
        tolerate_protection(items(spec, "tolerations"))
    if found := workers_of(write):
        own = [kubelet for worker in found if (kubelet := at(worker, "kubernetes", "kubelet")) is not None]
        _set_missing(spec, _WITH_WORKERS)
        _set_node_mask(write, spec, kubernetes["kubeControllerManager"], own)
        _set_swap(kubernetes["kubelet"], own)
    if not write.is_deleting:
        agree_on_profile(spec)


def agree_on_profile(spec: Object) -> None:
    """Align `cloudProfile` with the deprecated `cloudProfileName`."""
    name, reference = text(spec.get("cloudProfileName")), mapping(spec.get("cloudProfile"))
    if not reference and name:
        spec["cloudProfile"] = {"kind": CLOUD_PROFILES.kind, "name": name}
        return
    if reference and not reference.get("kind"):
        reference["kind"] = CLOUD_PROFILES.kind
    if reference.get("kind") == CLOUD_PROFILES.kind:
        spec["cloudProfileName"] = reference.get("name")
    elif reference:
        spec.pop("cloudProfileName", None)


def _set_missing(obj: Object, defaults: Object) -> None:
    """Set missing fields, recursively in existing objects."""
    for name, value in defaults.items():
        found = obj.get(name)
        if found is None:
            obj[name] = copied(value) if isinstance(value, dict) else value
        elif isinstance(value, dict):
            _set_missing(found, value)


def set_defaults_of_version(write: Write) -> None:
    """Set defaults for `mutations`, when the full version is known."""
    spec, version = write.own_spec(), kubernetes_version(write.spec)
    kubernetes = child(spec, "kubernetes")
    _set_what_is_not_forbidden(write, spec, version)
    if kubernetes.get("enableStaticTokenKubeconfig") is None:
        kubernetes["enableStaticTokenKubeconfig"] = version is not None and version < (1, 26)
    if workers_of(write):
        manager = child(kubernetes, "kubeControllerManager")
        if manager.get("nodeMonitorGracePeriod") is None:
            manager["nodeMonitorGracePeriod"] = _LONG_GRACE if version is not None and version < (1, 27) else "40s"
        elif _gives_up_long_grace(write, version):
            manager["nodeMonitorGracePeriod"] = "40s"


def _set_what_is_not_forbidden(write: Write, spec: Object, version: Version | None) -> None:
    """Set fields that newer versions of Kubernetes forbid; see `gardener.garden.maintenance.repairs`."""
    kubernetes = spec["kubernetes"]
    if kubernetes.get("clusterAutoscaler") is not None and (version is None or version < (1, 33)):
        _set_missing(kubernetes["clusterAutoscaler"], {"maxEmptyBulkDelete": 10})
    if version is not None and version >= (1, 34) and spec.get("cloudProfile") and not write.is_deleting:
        spec.pop("cloudProfileName", None)
    if version is None or version < (1, 35):
        _set_missing(child(kubernetes, "kubeAPIServer"), {"enableAnonymousAuthentication": False})
        if workers_of(write):
            _set_missing(spec, _ADDONS)


def _gives_up_long_grace(write: Write, version: Version | None) -> bool:
    """Whether a default of the former version has to become that of the new one."""
    before, path = kubernetes_version(write.old_spec), ("kubernetes", "kubeControllerManager", "nodeMonitorGracePeriod")
    if before is None or version is None or not before < (1, 27) <= version:
        return False
    return all(_is_long_grace(at(spec, *path)) for spec in (write.old_spec, write.spec))


def _is_long_grace(written: object) -> bool:
    try:
        return isinstance(written, str) and parse_duration(written) == parse_duration(_LONG_GRACE)
    except ValueError:
        return False


def _set_maintenance(write: Write, spec: Object) -> None:
    maintenance = child(spec, "maintenance")
    updates = maintenance.get("autoUpdate")
    if updates is None:
        updates = maintenance["autoUpdate"] = {"kubernetesVersion": True}
    if updates.get("machineImageVersion") is None and workers_of(write):
        updates["machineImageVersion"] = True
    if maintenance.get("timeWindow") is None:
        before = at(write.old_spec, "maintenance", "timeWindow")
        maintenance["timeWindow"] = before if isinstance(before, dict) else _some_hour()


def _some_hour() -> Object:
    hour = random.randrange(23)  # noqa: S311 - spreads the maintenance of clusters over the day
    return {"begin": f"{hour:02}0000+0000", "end": f"{hour + 1:02}0000+0000"}


def _set_node_mask(write: Write, spec: Object, manager: Object, own: list[Object]) -> None:
    """Set the mask; `own` are kubelet's settings of single pools."""
    if manager.get("nodeCIDRMaskSize") is None:
        before = at(write.old_spec, "kubernetes", "kubeControllerManager", "nodeCIDRMaskSize")
        manager["nodeCIDRMaskSize"] = before or _node_mask(spec, own)


def _node_mask(spec: Object, own: list[Object]) -> int:
    """Mask with twice as many addresses for a node as it may have Pods."""
    if ip_families(spec) == ["IPv6"]:
        return 64
    given: list[int] = [
        at(spec, "kubernetes", "kubelet", "maxPods") or PODS_OF_KUBELET,
        *(each["maxPods"] for each in own if each.get("maxPods")),
    ]
    pods = min(max(*given, 1), _MOST_PODS)
    return 32 - ceil(log2(2 * pods))


def _set_swap(kubelet: Object, own: list[Object]) -> None:
    for each in (kubelet, *own):
        if each.get("failSwapOn") is None:
            each["failSwapOn"] = True
        elif each["failSwapOn"] is False and at(each, "featureGates", "NodeSwap") is True:
            swap = child(each, "memorySwap")
            if swap.get("swapBehavior") is None:
                swap["swapBehavior"] = "LimitedSwap"
