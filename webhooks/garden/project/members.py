"""What the members of a Project must be."""

from collections.abc import Iterable, Iterator, Sequence

from gardener import keys
from gardener.garden.members import (
    ADMIN,
    EXTENSION_PREFIX,
    OWNER,
    ROLES,
    VIEWER,
    Identity,
    extension_role,
    extension_roles,
    extension_roles_of,
    identity,
    members,
    roles,
)
from kube.names import dns_subdomain_problems
from kube.objects import Object, mapping, text
from kube.resources import CLUSTER_ROLES, RBAC_GROUP
from kube.validation import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    invalid_for,
    not_found,
    not_supported,
    required,
    too_long,
)
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import SERVICE_ACCOUNT_PREFIX, Write

LONGEST_EXTENSION_ROLE = 20
MOST_EXTENSION_ROLES = 20
"""Of a Project: each is a ClusterRole and a RoleBinding."""
OF_THE_SPEC = "spec.owner"
"""The owner himself, whose rights come from that field: no role of a member has this name."""
_KINDS = ("Group", "ServiceAccount", "User")


def set_roles(member: Object, wanted: Sequence[str]) -> None:
    member["role"] = wanted[0] if wanted else VIEWER
    if wanted[1:]:
        member["roles"] = list(wanted[1:])
    else:
        member.pop("roles", None)


def default_group(subject: Object) -> None:
    if subject.get("kind") in {"User", "Group"} and not subject.get("apiGroup"):
        subject["apiGroup"] = RBAC_GROUP


def as_numbered(project: Object) -> Object:
    """As findings number it: all roles of a member in one list, however they are stored."""
    spec = mapping(project.get("spec"))
    return {**project, "spec": {**spec, "members": [_as_numbered(member) for member in members(spec)]}}


def _as_numbered(member: Object) -> Object:
    numbered = {name: value for name, value in member.items() if name != "role"}
    default_group(numbered)
    return {**numbered, "roles": roles(member) or [VIEWER]}


def held_roles(spec: Object) -> set[tuple[Identity, str]]:
    """Who has which role that only some may give, by `spec.owner` or as a member.

    An owner is a member, also where that is not stored yet. Who may change a Project may have ServiceAccounts do so, or
    look at it, as in the original.
    """
    held = {(identity(member), role) for member in members(spec) for role in roles(member) or (VIEWER,)}
    held = {(who, role) for who, role in held if who[0] != "ServiceAccount" or role not in {ADMIN, VIEWER}}
    owner = mapping(spec.get("owner"))
    if not owner:
        return held
    who = identity(owner)
    if not any(each == who for each, _ in held):
        held |= {(who, ADMIN), (who, OWNER)}
    return held | {(who, OF_THE_SPEC)}


# --- rules


def old_role(write: Write) -> Iterator[str]:
    """For `deprecations`: only about members that change, since `role` is there in all that are stored."""
    known = [(identity(member), roles(member)) for member in members(write.old_spec)]
    for index, member in enumerate(members(write.spec)):
        if member.get("role") and (identity(member), roles(member)) not in known:
            yield f"spec.members[{index}].role is deprecated: use roles"


def member_errors(write: Write) -> Iterator[Finding]:
    seen: set[Identity] = set()
    # The last by name: which ones they are does not depend on the order of members.
    too_many = set(sorted(set(extension_roles(write.spec)))[MOST_EXTENSION_ROLES:])
    owners = 0
    for index, member in enumerate(members(write.spec)):
        path = f"spec.members[{index}]"
        yield from subject_errors(path, member)
        yield from _user_name_errors(path, member)
        if identity(member) in seen:
            yield duplicate(path, {name: member[name] for name in ("kind", "namespace", "name") if name in member})
        seen.add(identity(member))
        held = roles(member)
        yield from _role_errors(f"{path}.roles", held, too_many)
        if OWNER in held:
            owners += 1
            if owners > 1:
                yield forbidden(
                    f"{path}.roles[{held.index(OWNER)}]", "cannot have more than one member having the owner role"
                )


def _user_name_errors(path: str, member: Object) -> Iterator[FieldError]:
    kind, namespace, name = identity(member)
    if member.get("kind") == "User" and kind == "ServiceAccount" and not (namespace and name):
        wanted = f"{SERVICE_ACCOUNT_PREFIX}<namespace>:<name>"
        yield invalid(f"{path}.name", text(member.get("name")), f"must be the user name of a ServiceAccount: {wanted}")


def subject_errors(path: str, subject: Object) -> Iterator[FieldError]:
    kind, group = text(subject.get("kind")), text(subject.get("apiGroup"))
    if not subject.get("name"):
        yield required(f"{path}.name")
    match kind:
        case "ServiceAccount":
            if name := text(subject.get("name")):
                yield from invalid_for(f"{path}.name", name, dns_subdomain_problems(name))
            if group:
                yield not_supported(f"{path}.apiGroup", group, ("",))
            if not subject.get("namespace"):
                yield required(f"{path}.namespace")
        case "User" | "Group":
            if group != RBAC_GROUP:
                yield not_supported(f"{path}.apiGroup", group, (RBAC_GROUP,))
        case _:
            yield not_supported(f"{path}.kind", kind, _KINDS)


def roles_carried(write: Write) -> Iterator[FieldError]:
    """For `references`: an extension role is what ClusterRoles with its label allow."""
    for index, member in enumerate(members(write.spec)):
        for number, role in enumerate(roles(member)):
            name = extension_role(role)
            if name and not write.garden.by(CLUSTER_ROLES, extension_roles_of, name):
                label = f"{keys.AGGREGATE_TO_EXTENSION_ROLE}: {name}"
                yield not_found(f"spec.members[{index}].roles[{number}]", role, f"no ClusterRole has the label {label}")


def _role_errors(path: str, held: Iterable[str], too_many: set[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, role in enumerate(held):
        where = f"{path}[{index}]"
        if role in seen:
            yield duplicate(where, role)
        seen.add(role)
        if role.startswith(EXTENSION_PREFIX):
            yield from _extension_role_errors(where, role.removeprefix(EXTENSION_PREFIX), role)
            if extension_role(role) in too_many:
                yield forbidden(where, f"all members together may have at most {MOST_EXTENSION_ROLES} extension roles")
        elif role not in ROLES:
            yield not_supported(where, role, sorted((*ROLES, f"{EXTENSION_PREFIX}*")))


def _extension_role_errors(path: str, name: str, role: str) -> Iterator[FieldError]:
    if len(name.encode()) > LONGEST_EXTENSION_ROLE:
        yield too_long(path, most=LONGEST_EXTENSION_ROLE)
    if name in {".", ".."}:
        yield invalid(path, role, f"may not be '{name}'")
    for character in "/%":
        if character in name:
            yield invalid(path, role, f"may not contain '{character}'")
    if not name:
        yield invalid(path, role, "must name the role")
