"""Objects in the cluster of every Shoot: labels of its system namespace, a role for viewers, and its identity."""

from collections.abc import Iterator, Mapping

from components import cluster_identity, shoot_pods
from components.access import READ, cluster_role, cluster_role_binding, rule
from components.component import OF_MANAGED_RESOURCE, Component
from components.control_plane import in_shoot
from components.inputs import Inputs
from components.namespaces import KUBE_SYSTEM
from components.parts import made
from components.results import INFRASTRUCTURE
from gardener import keys
from gardener.garden.shoots import zones_of_workers
from kube.objects import Object, spec
from kube.resources import CONFIG_MAPS, NAMESPACES

_NAMESPACES, _SYSTEM = "shoot-core-namespaces", "shoot-core-system"
_IDENTITY = f"shoot-core-{cluster_identity.NAME}"
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
"""All kinds except for Secrets, and those that a Shoot without workers does not serve."""
_READABLE_OF_PODS: Mapping[str, tuple[str, ...]] = {
    "apps": ("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch": ("cronjobs", "jobs"),
    "policy": ("poddisruptionbudgets",),
    "storage.k8s.io": ("csidrivers", "csinodes"),
}
"""Kinds that only a Shoot with workers serves."""


def _namespaces(inputs: Inputs) -> list[Object]:
    system = made(
        NAMESPACES,
        KUBE_SYSTEM,
        labels={keys.NAMESPACE_PURPOSE: KUBE_SYSTEM, keys.HIGH_AVAILABILITY_CONSIDER: "true"},
        annotations={keys.HIGH_AVAILABILITY_ZONES: ",".join(zones_of_workers(spec(inputs.shoot)))},
    )
    return in_shoot(_NAMESPACES, [system], namespace=inputs.namespace, keep_objects=True)


def _system(inputs: Inputs) -> list[Object]:
    of_pods = shoot_pods.objects(inputs) if inputs.has_workers else ()
    return in_shoot(_SYSTEM, [*_viewers(has_pods=inputs.has_workers), *of_pods], namespace=inputs.namespace)


def _viewers(*, has_pods: bool) -> Iterator[Object]:
    more = _READABLE_OF_PODS if has_pods else {}
    readable = {each: (*_READABLE.get(each, ()), *more.get(each, ())) for each in sorted({*_READABLE, *more})}
    yield cluster_role(_READ_ONLY, *(rule(group, sorted(kinds), READ) for group, kinds in readable.items()))
    yield cluster_role_binding(_READ_ONLY, groups=[_VIEWERS], is_replaceable=True)


def _identity(inputs: Inputs) -> list[Object]:
    data = {cluster_identity.NAME: inputs.identity, "origin": "shoot"}
    config_map = made(CONFIG_MAPS, cluster_identity.NAME, namespace=KUBE_SYSTEM, data=data, immutable=True)
    return in_shoot(_IDENTITY, [config_map], namespace=inputs.namespace)


COMPONENTS = (
    Component(
        name=_NAMESPACES,
        title="shoot namespaces system component",
        objects=_namespaces,
        readiness=OF_MANAGED_RESOURCE,
        awaited="shoot namespaces have been reconciled",
        awaited_after=["resource-manager-ready"],
        task="namespaces",
        after=["resource-manager"],
        is_of_workers=False,
        is_left_asleep=False,
    ),
    Component(
        name=_IDENTITY,
        title="shoot cluster identity",
        objects=_identity,
        task="shoot-identity",
        after=["resource-manager", "identity", "systems-ready"],
        is_of_workers=False,
    ),
    Component(
        name=_SYSTEM,
        title="shoot system resources",
        objects=_system,
        task="system",
        results=[INFRASTRUCTURE],
        after=["resource-manager-ready", "connection", "namespaces-ready", "systems-ready"],
        is_of_workers=False,
    ),
)
