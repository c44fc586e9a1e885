"""Webhooks that may keep a Shoot from working: those that intercept writes of its control plane and nodes.

A webhook whose backend runs in the cluster can't respond while no node is ready. If it intercepts writes that make a
node ready, that lasts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gardener import keys
from kube.objects import Object, integer, labels, mapping, mappings, matches_label_selector, text, texts

IGNORE, FAIL = "Ignore", "Fail"
_DEFAULT_SECONDS = 10
LONGEST_SECONDS, LONGEST_SECONDS_FOR_LEASES = 15, 3
_NAME = "kubernetes.io/metadata.name"
DEFAULT = {_NAME: "default"}
NODE_LEASES = {_NAME: "kube-node-lease"}
KUBE_SYSTEM = {keys.SHOOT_NO_CLEANUP: "true", keys.NAMESPACE_PURPOSE: "kube-system", _NAME: "kube-system"}
_OF_PODS = {keys.SHOOT_NO_CLEANUP: "true", "origin": "gardener"}
_WRITING = frozenset({"*", "CREATE", "UPDATE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitive:
    """Objects that have to be writable regardless of webhooks.

    Attributes:
        resource: with its subresource.
        object_labels, namespace_labels: None: any.
    """

    group: str
    versions: tuple[str, ...]
    resource: str
    is_namespaced: bool = True
    object_labels: Mapping[str, str] | None = None
    namespace_labels: Mapping[str, str] | None = None


def _sensitive(
    group: str, versions: str, *resources: str, namespaces: Iterable[Mapping[str, str]] = (KUBE_SYSTEM,)
) -> Iterator[Sensitive]:
    for resource in resources:
        for each in namespaces:
            yield Sensitive(
                group=group,
                versions=tuple(versions.split()),
                resource=resource,
                object_labels=_OF_PODS if resource.startswith("pods") else None,
                namespace_labels=each,
            )


def _of_cluster(group: str, versions: str, *resources: str) -> Iterator[Sensitive]:
    for each in resources:
        of_namespaces = KUBE_SYSTEM if each.startswith("namespaces") else None
        yield Sensitive(
            group=group,
            versions=tuple(versions.split()),
            resource=each,
            is_namespaced=False,
            object_labels=of_namespaces,
            namespace_labels=of_namespaces,
        )


_WORKLOADS = (
    "controllerrevisions",
    "daemonsets",
    "daemonsets/status",
    "deployments",
    "deployments/scale",
    "replicasets",
    "replicasets/status",
    "replicasets/scale",
)
SENSITIVE = (
    *_sensitive("", "v1", "pods", "pods/status", "configmaps", "secrets", "serviceaccounts"),
    *_sensitive("", "v1", "endpoints", "services", "services/status", namespaces=(DEFAULT, KUBE_SYSTEM)),
    *_of_cluster("", "v1", "nodes", "nodes/status", "namespaces", "namespaces/status"),
    *_sensitive("apps", "v1 v1beta1 v1beta2", *_WORKLOADS),
    *_sensitive("extensions", "v1beta1", *_WORKLOADS, "networkpolicies"),
    *_sensitive("networking.k8s.io", "v1 v1beta1", "networkpolicies"),
    *_sensitive("rbac.authorization.k8s.io", "v1 v1alpha1 v1beta1", "roles", "rolebindings"),
    *_of_cluster("rbac.authorization.k8s.io", "v1 v1alpha1 v1beta1", "clusterroles", "clusterrolebindings"),
    *_of_cluster("apiextensions.k8s.io", "v1 v1beta1", "customresourcedefinitions", "customresourcedefinitions/status"),
    *_of_cluster("apiregistration.k8s.io", "v1 v1beta1", "apiservices", "apiservices/status"),
    *_of_cluster(
        "certificates.k8s.io",
        "v1",
        "certificatesigningrequests",
        "certificatesigningrequests/status",
        "certificatesigningrequests/approval",
    ),
    *_of_cluster("scheduling.k8s.io", "v1 v1beta1", "priorityclasses"),
    Sensitive(group="coordination.k8s.io", versions=("v1", "v1beta1"), resource="leases"),
)
"""Writes of the API server, the controllers, the kubelets, and the system components that make nodes ready."""
LEASES = tuple(
    Sensitive(
        group="coordination.k8s.io",
        versions=("v1", "v1beta1"),
        resource="leases",
        object_labels={},
        namespace_labels=each,
    )
    for each in (KUBE_SYSTEM, NODE_LEASES)
)
"""Leases of leader elections and of nodes, whose holders give up after a few seconds."""


def seconds(webhook: Object) -> int:
    """Timeout of a call, in seconds."""
    return integer(webhook.get("timeoutSeconds", _DEFAULT_SECONDS))


def failure_policy(webhook: Object) -> str:
    return text(webhook.get("failurePolicy")) or FAIL


def met(webhook: Object, sensitive: Iterable[Sensitive]) -> list[Sensitive]:
    """Sensitive objects that a webhook is called for."""
    of_objects, of_namespaces = webhook.get("objectSelector"), webhook.get("namespaceSelector")
    rules = mappings(webhook.get("rules"))
    return [
        each
        for each in sensitive
        if any(_rule_meets(rule, each) for rule in rules)
        and _selects(of_objects, each.object_labels)
        and (each.namespace_labels is None or _selects(of_namespaces, each.namespace_labels))
    ]


def is_slow_for_leases(webhook: Object) -> bool:
    return seconds(webhook) > LONGEST_SECONDS_FOR_LEASES and bool(met(webhook, LEASES))


def is_problematic(webhook: Object) -> bool:
    if is_slow_for_leases(webhook):
        return True
    may_fail = failure_policy(webhook) != IGNORE or seconds(webhook) > LONGEST_SECONDS
    return may_fail and bool(met(webhook, SENSITIVE))


def is_checked(configuration: Object) -> bool:
    """Whether it is a user's: not part of the control plane."""
    having = labels(configuration)
    return having.get("app") != "gardener-resource-manager" and having.get(keys.MANAGED_BY) != "gardener"


def problem_of(configuration: Object) -> str:
    """Problem of its first problematic webhook; empty if there is none."""
    for webhook in mappings(configuration.get("webhooks")):
        if is_problematic(webhook):
            return (
                f'webhook "{text(webhook.get("name"))}" with failurePolicy "{failure_policy(webhook)}" and'
                f" {seconds(webhook)}s timeout might prevent worker nodes from properly joining the shoot cluster"
            )
    return ""


def _selects(selector: object, having: Mapping[str, str] | None) -> bool:
    return having is None or matches_label_selector(mapping(selector), having)


def _rule_meets(rule: Object, sensitive: Sensitive) -> bool:
    scope = text(rule.get("scope")) or "*"
    if scope != "*" and (scope == "Namespaced") != sensitive.is_namespaced:
        return False
    return (
        bool(_WRITING.intersection(texts(rule.get("operations"))))
        and _has(rule, "apiGroups", sensitive.group)
        and any(_has(rule, "apiVersions", each) for each in sensitive.versions)
        and any(_names(each, sensitive.resource) for each in texts(rule.get("resources")))
    )


def _has(rule: Object, field: str, value: str) -> bool:
    listed = texts(rule.get(field))
    return value in listed or "*" in listed


def _names(written: str, resource: str) -> bool:
    """Whether an entry of a rule matches a resource or subresource: `*` all resources, `*/*` all subresources too."""
    pairs = zip((*written.partition("/")[::2],), (*resource.partition("/")[::2],), strict=True)
    return all(of_rule in {"*", wanted} for of_rule, wanted in pairs)
