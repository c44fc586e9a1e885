"""Members of a Project and their roles.

A member has a list of roles. It is stored as `role`, the first of them, and `roles`, all others: `role` is the older
field, and old and new clients read it.
"""

from collections.abc import Iterator
from typing import TypeAlias

from gardener import keys
from kube.objects import Object, labels, mappings, text, texts

ADMIN, OWNER, VIEWER = "admin", "owner", "viewer"
USER_ACCESS_MANAGER, SERVICE_ACCOUNT_MANAGER = "uam", "serviceaccountmanager"
ROLES = (ADMIN, OWNER, SERVICE_ACCOUNT_MANAGER, USER_ACCESS_MANAGER, VIEWER)
EXTENSION_PREFIX = "extension:"
_SERVICE_ACCOUNTS = "system:serviceaccount:"

Identity: TypeAlias = tuple[str, str, str]


def members(spec: Object) -> list[Object]:
    return mappings(spec.get("members"))


def roles(member: Object) -> list[str]:
    first, others = text(member.get("role")), texts(member.get("roles"))
    return [first, *(role for role in others if role != first)] if first else others


def extension_roles_of(cluster_role: Object) -> Iterator[str]:
    """The extension role that a ClusterRole adds rights to."""
    if name := labels(cluster_role).get(keys.AGGREGATE_TO_EXTENSION_ROLE):
        yield name


def extension_role(role: str) -> str:
    """Extension role without prefix; empty for other roles."""
    return role.removeprefix(EXTENSION_PREFIX) if role.startswith(EXTENSION_PREFIX) else ""


def extension_roles(spec: Object) -> list[str]:
    """Names without prefix, in the order of their first use by a member."""
    held = (extension_role(role) for member in members(spec) for role in roles(member))
    return [name for name in dict.fromkeys(held) if name]


def identity(subject: Object) -> Identity:
    """Identity of a subject: kind, namespace, name. A user name of a ServiceAccount counts as that ServiceAccount."""
    kind, name = text(subject.get("kind")), text(subject.get("name"))
    if kind == "User" and name.startswith(_SERVICE_ACCOUNTS):
        namespace, _, account = name.removeprefix(_SERVICE_ACCOUNTS).partition(":")
        return "ServiceAccount", namespace, account
    return kind, text(subject.get("namespace")) if kind == "ServiceAccount" else "", name
