"""The webhooks of resource managers: which requests the API server of a seed, and that of a Shoot, sends there.

`Client` says how it is reached: by its Service, or by a URL where it is a process beside the API server.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.gardenlet.components.parts import made
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
_WRITES = ("CREATE", "UPDATE")
_INVALIDATE_TOKENS = "/webhooks/invalidate-service-account-token-secret"
_WITH_TOKENS = {"matchLabels": {keys.PURPOSE: keys.PURPOSE_TOKEN_INVALIDATOR}}
_OWN_APP = {"key": "app", "operator": "NotIn", "values": ["gardener-resource-manager"]}
_OF_GARDENER = ["kube-system", "kubernetes-dashboard"]
"""Purposes of namespaces in Shoots."""
_NOT_IN_SHOOTS = {"key": keys.NAMESPACE_PURPOSE, "operator": "NotIn", "values": _OF_GARDENER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """How the API server reaches the webhooks.

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
    # The webhooks of others get failure policies and selectors from the gardenlet; these are as they have to be.
    labels = {**labels, keys.REMEDIATION_EXCLUDE: "true"}
    return [
        made(MUTATING_WEBHOOKS, name, labels=labels, webhooks=list(_mutating(client))),
        made(VALIDATING_WEBHOOKS, name, labels=labels, webhooks=list(_validating(client))),
    ]


def of_shoot(name: str, client: Client, *, labels: Mapping[str, str]) -> Object:
    """The configuration in a Shoot without workers: there are no pods to be changed. Args: name: of it."""
    webhook = _webhook(
        f"token-invalidator.{GROUP}",
        client.at(_INVALIDATE_TOKENS),
        [_rule(_WRITES, "", ["v1"], ["secrets"])],
        selects=_WITH_TOKENS,
        considers={"matchExpressions": [{"key": keys.NAMESPACE_PURPOSE, "operator": "In", "values": _OF_GARDENER}]},
    )
    return made(MUTATING_WEBHOOKS, name, labels=labels, webhooks=[webhook])


def _mutating(client: Client) -> Iterator[Object]:
    yield _mutates(
        f"token-invalidator.{GROUP}",
        client.at(_INVALIDATE_TOKENS),
        [_rule(_WRITES, "", ["v1"], ["secrets"])],
        selects=_WITH_TOKENS,
    )
    yield _mutates(
        f"projected-token-mount.{GROUP}",
        client.at("/webhooks/mount-projected-service-account-token"),
        [_rule(("CREATE",), "", ["v1"], ["pods"])],
        selects={"matchExpressions": [_lacks(f"projected-token-mount.{GROUP}/skip"), _OWN_APP]},
    )
    yield _mutates(
        f"high-availability-config.{GROUP}",
        client.at("/webhooks/high-availability-config"),
        [
            _rule(_WRITES, "apps", ["v1"], ["deployments", "statefulsets"]),
            _rule(_WRITES, "autoscaling", ["v2beta1", "v2"], ["horizontalpodautoscalers"]),
            _rule(_WRITES, "autoscaling.k8s.io", ["v1alpha1"], ["hvpas"]),
        ],
        selects={"matchExpressions": [_lacks(keys.HIGH_AVAILABILITY_SKIP)]},
        considers={"matchLabels": {keys.HIGH_AVAILABILITY_CONSIDER: "true"}},
        matches="Equivalent",
    )
    yield _mutates(
        f"pod-topology-spread-constraints.{GROUP}",
        client.at("/webhooks/pod-topology-spread-constraints"),
        [_rule(("CREATE",), "", ["v1"], ["pods"])],
        selects={"matchExpressions": [_OWN_APP, _lacks(f"topology-spread-constraints.{GROUP}/skip")]},
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
    """Args: selects: which objects. considers: in which namespaces. matches: the match policy."""
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
