"""Rights of the members of a Project, by role.

RBAC decides: in the namespace of the Project by ClusterRoles of the garden (manifests/base/garden/projects.yaml), about
the Project itself by ClusterRoles that the controller manager creates for each Project. The tables list their rules.
"""

from collections.abc import Iterator, Mapping

from gardener.api import garden
from gardener.garden import members
from gardener.rights.model import READ, Case, ObjectSet, Right, Table
from kube import resources as kubernetes

_WRITE = frozenset({"create", "delete", "deletecollection", "patch", "update"})
_ALL = READ | _WRITE
_CREATE = frozenset({"create"})
_EVENTS = (kubernetes.EVENTS, kubernetes.NEW_EVENTS)


def _inside(case: Case) -> bool:
    return bool(case.namespace) and case.requested.namespace == case.namespace


INSIDE = ObjectSet(title="in its namespace", has=_inside, lists=_inside, place=_inside)
PROJECT = ObjectSet(title="the Project", has=lambda case: bool(case.project) and case.requested.name == case.project)
NAMESPACE = ObjectSet(
    title="its namespace", has=lambda case: bool(case.namespace) and case.requested.name == case.namespace
)


def _member() -> Iterator[Right]:
    for kind in (
        kubernetes.CONFIG_MAPS,
        kubernetes.SECRETS,
        garden.QUOTAS,
        garden.SECRET_BINDINGS,
        garden.SHOOTS,
        garden.CREDENTIALS_BINDINGS,
        garden.OPEN_ID_CONNECT_PRESETS,
        garden.BASTIONS,
        kubernetes.ROLES,
        kubernetes.ROLE_BINDINGS,
    ):
        yield Right(kind, _ALL, INSIDE)
    yield Right(garden.NAMESPACED_CLOUD_PROFILES, _ALL - {"deletecollection"}, INSIDE)
    for kind in (*_EVENTS, kubernetes.RESOURCE_QUOTAS, kubernetes.SERVICE_ACCOUNTS):
        yield Right(kind, READ, INSIDE)
    for subresource in ("adminkubeconfig", "viewerkubeconfig"):
        yield Right(garden.SHOOTS, _CREATE, INSIDE, subresource=subresource)


def _viewer() -> Iterator[Right]:
    for right in MEMBER.rights:
        if right.resource != kubernetes.SECRETS and not right.subresource:
            yield Right(right.resource, READ, INSIDE)
    yield Right(garden.SHOOTS, _CREATE, INSIDE, subresource="viewerkubeconfig")


def _service_accounts() -> Iterator[Right]:
    yield Right(kubernetes.SERVICE_ACCOUNTS, _ALL, INSIDE)
    yield Right(kubernetes.SERVICE_ACCOUNTS, _CREATE, INSIDE, subresource="token")


def _of_project(verbs: str, *, sees_namespace: bool = True) -> Table:
    rights = [Right(garden.PROJECTS, frozenset(verbs.split()), PROJECT)]
    if sees_namespace:
        rights.append(Right(kubernetes.NAMESPACES, frozenset({"get"}), NAMESPACE))
    return Table(rights)


MEMBER = Table(_member())
VIEWER = Table(_viewer())
SERVICE_ACCOUNTS = Table(_service_accounts())
INSIDE_NAMESPACE: Mapping[str, Table] = {
    "project-member": MEMBER,
    "project-viewer": VIEWER,
    "project-serviceaccountmanager": SERVICE_ACCOUNTS,
}
"""Rights by name of the ClusterRole, without prefix."""
OF_PROJECT: Mapping[str, Table] = {
    "project": _of_project("get patch manage-members update delete"),
    "project-uam": _of_project("get patch manage-members update", sees_namespace=False),
    "project-member": _of_project("get patch update delete"),
    "project-viewer": _of_project("get"),
}
"""Rights by name of the ClusterRole, without prefix and name of the Project."""

ROLES: Mapping[str, Table] = {
    role: Table(right for table in tables for right in table.rights)
    for role, tables in {
        members.OWNER: (MEMBER, SERVICE_ACCOUNTS, OF_PROJECT["project-member"]),
        members.ADMIN: (MEMBER, OF_PROJECT["project-member"]),
        members.VIEWER: (VIEWER, OF_PROJECT["project-viewer"]),
        members.USER_ACCESS_MANAGER: (OF_PROJECT["project-uam"],),
        members.SERVICE_ACCOUNT_MANAGER: (SERVICE_ACCOUNTS,),
    }.items()
}
"""Rights of members, by role."""
OWNER = Table((*OF_PROJECT["project"].rights, *SERVICE_ACCOUNTS.rights))
"""Rights of the user in `spec.owner`, in addition to those of the roles in `spec.members`."""
