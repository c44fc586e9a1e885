"""What every Shoot has in its own cluster: labels of its system namespace, a role for viewers, and who it is."""

from collections.abc import Iterable, Iterator, Mapping

from agent.gardenlet.components import cluster_identity
from agent.gardenlet.components.access import READ, cluster_role, cluster_role_binding, rule
from agent.gardenlet.components.control_plane import in_shoot
from agent.gardenlet.components.namespaces import KUBE_SYSTEM
from agent.gardenlet.components.parts import made
from gardener import keys
from kube.objects import Object
from kube.resources import CONFIG_MAPS, NAMESPACES

NAMESPACES_NAME, SYSTEM_NAME = "shoot-core-namespaces", "shoot-core-system"
IDENTITY_NAME = f"shoot-core-{cluster_identity.NAME}"
"""Names of ManagedResources."""
_VIEWERS = "gardener.cloud:system:viewers"
_READ_ONLY = "gardener.cloud:system:read-only"
_READABLE: Mapping[str, tuple[str, ...]] = {
    "": (
        "componentstatuses",
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "replicationcontrollers",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ),
    "admissionregistration.k8s.io": (
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ),
    "apiextensions.k8s.io": ("customresourcedefinitions",),
    "apiregistration.k8s.io": ("apiservices",),
    "autoscaling": ("horizontalpodautoscalers",),
    "certificates.k8s.io": ("certificatesigningrequests",),
    "coordination.k8s.io": ("leases",),
    "discovery.k8s.io": ("endpointslices",),
    "events.k8s.io": ("events",),
    "flowcontrol.apiserver.k8s.io": ("flowschemas", "prioritylevelconfigurations"),
    "networking.k8s.io": ("ingressclasses", "ingresses", "networkpolicies"),
    "node.k8s.io": ("runtimeclasses",),
    "rbac.authorization.k8s.io": ("clusterrolebindings", "clusterroles", "rolebindings", "roles"),
    "scheduling.k8s.io": ("priorityclasses",),
    "storage.k8s.io": ("csistoragecapacities", "storageclasses", "volumeattachments"),
}
"""All but Secrets, and what a Shoot without workers does not serve."""
_READABLE_OF_PODS: Mapping[str, tuple[str, ...]] = {
    "apps": ("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch": ("cronjobs", "jobs"),
    "policy": ("poddisruptionbudgets",),
    "storage.k8s.io": ("csidrivers", "csinodes"),
}
"""What only a Shoot with workers serves."""


def namespaces(namespace: str, *, zones: str = "") -> list[Object]:
    """Args: namespace: of the Shoot, in the seed. zones: of its workers, separated by commas."""
    system = made(
        NAMESPACES,
        KUBE_SYSTEM,
        labels={keys.NAMESPACE_PURPOSE: KUBE_SYSTEM, keys.HIGH_AVAILABILITY_CONSIDER: "true"},
        annotations={keys.HIGH_AVAILABILITY_ZONES: zones},
    )
    return in_shoot(NAMESPACES_NAME, [system], namespace=namespace, keep_objects=True)


def system(namespace: str, *, of_pods: Iterable[Object] | None = None) -> list[Object]:
    """Args: of_pods: what there is for pods; None: there are no workers."""
    has_pods = of_pods is not None
    return in_shoot(SYSTEM_NAME, [*_viewers(has_pods=has_pods), *(of_pods or ())], namespace=namespace)


def _viewers(*, has_pods: bool) -> Iterator[Object]:
    more = _READABLE_OF_PODS if has_pods else {}
    readable = {each: (*_READABLE.get(each, ()), *more.get(each, ())) for each in sorted({*_READABLE, *more})}
    yield cluster_role(_READ_ONLY, *(rule(group, sorted(kinds), READ) for group, kinds in readable.items()))
    yield cluster_role_binding(_READ_ONLY, groups=[_VIEWERS], is_replaceable=True)


def identity(namespace: str, its_identity: str) -> list[Object]:
    data = {cluster_identity.NAME: its_identity, "origin": "shoot"}
    config_map = made(CONFIG_MAPS, cluster_identity.NAME, namespace=KUBE_SYSTEM, data=data, immutable=True)
    return in_shoot(IDENTITY_NAME, [config_map], namespace=namespace)


def identity_of(technical_id: str, uid: str, garden_identity: str) -> str:
    """`status.clusterIdentity` of a Shoot."""
    return f"{technical_id}-{uid}-{garden_identity}"
