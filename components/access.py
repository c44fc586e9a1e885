"""Roles of components, and their bindings."""

from collections.abc import Mapping, Sequence

from components.parts import made
from gardener import keys
from kube.objects import Object
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    RBAC_GROUP,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
)

READ = ("get", "list", "watch")
EVERYTHING = ("*",)

Texts = str | Sequence[str]


def rule(groups: Texts, resources: Texts, verbs: Texts, *, names: Sequence[str] = ()) -> Object:
    """Args: names: of the objects; empty: all."""
    found: Object = {"apiGroups": _listed(groups), "resources": _listed(resources), "verbs": _listed(verbs)}
    return found | ({"resourceNames": list(names)} if names else {})


def urls(paths: Sequence[str], verbs: Texts) -> Object:
    """Rule for non-resource URLs."""
    return {"nonResourceURLs": list(paths), "verbs": _listed(verbs)}


def service_account(name: str, namespace: str, *, labels: Mapping[str, str] | None = None) -> Object:
    """ServiceAccount without automounted tokens; pods that need one request it."""
    return made(SERVICE_ACCOUNTS, name, namespace=namespace, labels=labels, automountServiceAccountToken=False)


def cluster_role(name: str, *rules: Object, labels: Mapping[str, str] | None = None) -> Object:
    return made(CLUSTER_ROLES, name, labels=labels, rules=list(rules))


def cluster_role_binding(
    name: str,
    *accounts: str,
    namespace: str = "",
    groups: Sequence[str] = (),
    users: Sequence[str] = (),
    role: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    is_replaceable: bool = False,
) -> Object:
    """Args:
    name: of the binding.
    role: ClusterRole, if it has another name.
    accounts: ServiceAccounts.
    namespace: of the ServiceAccounts.
    groups: of users.
    users: other than ServiceAccounts.
    labels: of the binding.
    annotations: of the binding.
    is_replaceable: whether the resource manager recreates it when its role changes.
    """
    notes = {**(annotations or {}), **({keys.DELETE_ON_INVALID_UPDATE: "true"} if is_replaceable else {})}
    return made(
        CLUSTER_ROLE_BINDINGS,
        name,
        labels=labels,
        annotations=notes,
        roleRef={"apiGroup": RBAC_GROUP, "kind": CLUSTER_ROLES.kind, "name": role or name},
        subjects=[
            *(_subject(account, namespace) for account in accounts),
            *({"apiGroup": RBAC_GROUP, "kind": "Group", "name": group} for group in groups),
            *({"apiGroup": RBAC_GROUP, "kind": "User", "name": user} for user in users),
        ],
    )


def role(name: str, namespace: str, *rules: Object, labels: Mapping[str, str] | None = None) -> Object:
    return made(ROLES, name, namespace=namespace, labels=labels, rules=list(rules))


def role_binding(name: str, namespace: str, account: str, *, labels: Mapping[str, str] | None = None) -> Object:
    """Binding of the Role with this name to a ServiceAccount of the same namespace."""
    return made(
        ROLE_BINDINGS,
        name,
        namespace=namespace,
        labels=labels,
        roleRef={"apiGroup": RBAC_GROUP, "kind": ROLES.kind, "name": name},
        subjects=[_subject(account, namespace)],
    )


def _subject(account: str, namespace: str) -> Object:
    return {"kind": SERVICE_ACCOUNTS.kind, "name": account, "namespace": namespace}


def _listed(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)
