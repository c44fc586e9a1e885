"""The webhooks of resource managers: requests that the API servers of a seed and of a Shoot send to them.

`Client` defines the target: a Service, or a URL if the resource manager is a process next to the API server.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.parts import made
from gardener import keys
from gardener.keys import GROUP
from kube.objects import Object
from kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

_EXTENSIONS, _DRUID = "extensions.gardener.cloud", "druid.gardener.cloud"
_EXTENSION_KINDS = (
    "backupbucket",
    "backupentry",
    "bastion",
    "containerruntime",
    "controlplane",
    "dnsrecord",
    "extension",
    "infrastructure",
    "network",
    "operatingsystemconfig",
    "worker",
)


def _lacks(label: str) -> Object:
    return {"key": label, "operator": "DoesNotExist"}


def _rule(operations: Sequence[str], group: str, versions: list[str], resources: list[str]) -> Object:
    return {
        "operations": list(operations),
        "apiGroups": [group],
        "apiVersions": versions,
        "resources": resources,
        "scope": "*",
    }


_WRITES = ("CREATE", "UPDATE")
_INVALIDATE_TOKENS = "/webhooks/invalidate-service-account-token-secret"
_WITH_TOKENS = {"matchLabels": {keys.PURPOSE: keys.PURPOSE_TOKEN_INVALIDATOR}}
_OWN_APP = {"key": "app", "operator": "NotIn", "values": ["gardener-resource-manager"]}
_OF_GARDENER = ["kube-system", "kubernetes-dashboard"]
"""Purposes of namespaces in Shoots."""
_NOT_IN_SHOOTS = {"key": keys.NAMESPACE_PURPOSE, "operator": "NotIn", "values": _OF_GARDENER}
_IN_SHOOTS = {"matchExpressions": [{**_NOT_IN_SHOOTS, "operator": "In"}]}
_BY_GARDENER = {"matchLabels": {keys.MANAGED_BY: "gardener"}}
_INJECT = "apiserver-proxy.networking.gardener.cloud/inject"
"""Label of namespaces and pods."""
_MOUNT_TOKENS = "/webhooks/mount-projected-service-account-token"
_WITHOUT_OWN_TOKENS = {"matchExpressions": [_lacks(f"projected-token-mount.{GROUP}/skip"), _OWN_APP]}
_AVAILABILITY = "/webhooks/high-availability-config"
_SCALED = [
    _rule(_WRITES, "apps", ["v1"], ["deployments", "statefulsets"]),
    _rule(_WRITES, "autoscaling", ["v2beta1", "v2"], ["horizontalpodautoscalers"]),
    _rule(_WRITES, "autoscaling.k8s.io", ["v1alpha1"], ["hvpas"]),
]
_SPREAD = "/webhooks/pod-topology-spread-constraints"
_SPREAD_UNLESS_SKIPPED = {"matchExpressions": [_OWN_APP, _lacks(f"topology-spread-constraints.{GROUP}/skip")]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Target of the API server's calls of webhooks.

    Attributes:
        namespace: of the Service.
        name: of the Service.
        ca_bundle: of the server's certificate, PEM.
        url: instead of the Service, such as `https://127.0.0.1:10250`.
    """

    namespace: str
    name: str
    ca_bundle: str
    url: str = ""

    def at(self, path: str) -> Object:
        bundle = {"caBundle": base64.b64encode(self.ca_bundle.encode()).decode()}
        if self.url:
            return {"url": f"{self.url}{path}", **bundle}
        return {"service": {"namespace": self.namespace, "name": self.name, "path": path, "port": 443}, **bundle}


def configurations(name: str, client: Client, *, labels: Mapping[str, str]) -> list[Object]:
    """Args: name: of both configurations."""
    # The gardenlet changes failure policies and selectors of other webhooks, but must not change these.
    labels = {**labels, keys.REMEDIATION_EXCLUDE: "true"}
    return [
        made(MUTATING_WEBHOOKS, name, labels=labels, webhooks=list(_mutating(client))),
        made(VALIDATING_WEBHOOKS, name, labels=labels, webhooks=list(_validating(client))),
    ]


def of_shoot(name: str, client: Client, *, labels: Mapping[str, str], has_pods: bool) -> Object:
    """The configuration in a Shoot. Args: name: of it. has_pods: whether there are workers."""
    webhook = _webhook(
        f"token-invalidator.{GROUP}",
        client.at(_INVALIDATE_TOKENS),
        [_rule(_WRITES, "", ["v1"], ["secrets"])],
        selects=_WITH_TOKENS,
        considers=_IN_SHOOTS,
    )
    webhooks = [webhook, *(_of_pods(client) if has_pods else ())]
    return made(MUTATING_WEBHOOKS, name, labels=labels, webhooks=webhooks)


def _of_pods(client: Client) -> Iterator[Object]:
    """Webhooks for system components in a Shoot; only kubernetes-service-host applies to all pods."""
    creation = [_rule(("CREATE",), "", ["v1"], ["pods"])]
    yield _webhook(
        f"projected-token-mount.{GROUP}",
        client.at(_MOUNT_TOKENS),
        creation,
        selects=_WITHOUT_OWN_TOKENS,
        considers=_IN_SHOOTS,
    )
    yield _webhook(
        f"high-availability-config.{GROUP}",
        client.at(_AVAILABILITY),
        _SCALED,
        selects={**_BY_GARDENER, "matchExpressions": [_lacks(keys.HIGH_AVAILABILITY_SKIP)]},
        considers={**_IN_SHOOTS, "matchLabels": {keys.HIGH_AVAILABILITY_CONSIDER: "true"}},
        matches="Equivalent",
    )
    injected = {"matchExpressions": [{"key": _INJECT, "operator": "NotIn", "values": ["disable"]}]}
    host = _webhook(
        f"kubernetes-service-host.{GROUP}",
        client.at("/webhooks/kubernetes-service-host"),
        creation,
        selects=injected,
        considers=injected,
    )
    # Pods of users start even without it.
    yield {**host, "failurePolicy": "Ignore", "timeoutSeconds": 2, "reinvocationPolicy": "Never"}
    yield _webhook(
        f"system-components-config.{GROUP}",
        client.at("/webhooks/system-components-config"),
        creation,
        selects={**_BY_GARDENER, "matchExpressions": [_lacks(f"system-components-config.{GROUP}/skip")]},
        considers=_IN_SHOOTS,
    )
    yield _webhook(
        f"pod-topology-spread-constraints.{GROUP}",
        client.at(_SPREAD),
        creation,
        selects={**_BY_GARDENER, **_SPREAD_UNLESS_SKIPPED},
        considers=_IN_SHOOTS,
    )


def _mutating(client: Client) -> Iterator[Object]:
    yield _mutates(
        f"token-invalidator.{GROUP}",
        client.at(_INVALIDATE_TOKENS),
        [_rule(_WRITES, "", ["v1"], ["secrets"])],
        selects=_WITH_TOKENS,
    )
    yield _mutates(
        f"projected-token-mount.{GROUP}",
        client.at(_MOUNT_TOKENS),
        [_rule(("CREATE",), "", ["v1"], ["pods"])],
        selects=_WITHOUT_OWN_TOKENS,
    )
    yield _mutates(
        f"high-availability-config.{GROUP}",
        client.at(_AVAILABILITY),
        _SCALED,
        selects={"matchExpressions": [_lacks(keys.HIGH_AVAILABILITY_SKIP)]},
        considers={"matchLabels": {keys.HIGH_AVAILABILITY_CONSIDER: "true"}},
        matches="Equivalent",
    )
    yield _mutates(
        f"pod-topology-spread-constraints.{GROUP}",
        client.at(_SPREAD),
        [_rule(("CREATE",), "", ["v1"], ["pods"])],
        selects=_SPREAD_UNLESS_SKIPPED,
    )


def _validating(client: Client) -> Iterator[Object]:
    deletion = client.at("/webhooks/validate-crd-deletion")
    definitions = [_rule(("DELETE",), "apiextensions.k8s.io", ["v1beta1", "v1"], ["customresourcedefinitions"])]
    protected = {"matchLabels": {keys.DELETION_PROTECTED: "true"}}
    yield _webhook(f"crd-deletion-protection.{GROUP}", deletion, definitions, selects=protected)
    objects = [
        _rule(("DELETE",), _DRUID, ["v1alpha1"], ["etcds"]),
        _rule(("DELETE",), _EXTENSIONS, ["v1alpha1"], [_plural(kind) for kind in _EXTENSION_KINDS]),
    ]
    yield _webhook(f"cr-deletion-protection.{GROUP}", deletion, objects)
    kinds = [*((_EXTENSIONS, kind) for kind in _EXTENSION_KINDS), (_DRUID, "etcd")]
    for group, kind in sorted(kinds, key=lambda each: each[1]):
        plural = _plural(kind)
        path = f"/validate-{group.replace('.', '-')}-v1alpha1-{kind}"
        rules = [_rule(_WRITES, group, ["v1alpha1"], [plural])]
        yield _webhook(f"validation.extensions.{plural}.{GROUP}", client.at(path), rules)


def _plural(kind: str) -> str:
    return "backupentries" if kind == "backupentry" else f"{kind}s"


def _mutates(
    name: str,
    client: Object,
    rules: list[Object],
    *,
    selects: Object,
    considers: Object | None = None,
    matches: str = "Exact",
) -> Object:
    considers = {**(considers or {}), "matchExpressions": [_NOT_IN_SHOOTS]}
    webhook = _webhook(name, client, rules, selects=selects, considers=considers, matches=matches)
    return {**webhook, "reinvocationPolicy": "Never"}


def _webhook(
    name: str,
    client: Object,
    rules: list[Object],
    *,
    selects: Object | None = None,
    considers: Object | None = None,
    matches: str = "Exact",
) -> Object:
    """Args: selects: objects. considers: namespaces. matches: the match policy."""
    return {
        "name": name,
        "clientConfig": client,
        "rules": rules,
        "failurePolicy": "Fail",
        "matchPolicy": matches,
        "namespaceSelector": considers or {},
        "objectSelector": selects or {},
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1beta1", "v1"],
    }
