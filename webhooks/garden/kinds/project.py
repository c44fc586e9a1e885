"""Projects: owner, members and tolerations of a namespace."""

from collections.abc import Iterable, Iterator, Sequence

from gardener import keys
from gardener.api.garden import PROJECTS, project
from gardener.garden import dual_approval, users
from gardener.garden.members import (
    ADMIN,
    EXTENSION_PREFIX,
    OWNER,
    ROLES,
    USER_ACCESS_MANAGER,
    VIEWER,
    Identity,
    extension_role,
    extension_roles,
    extension_roles_of,
    identity,
    members,
    roles,
)
from kube.names import dns_label_problems, dns_subdomain_problems
from kube.objects import Key, Object, mapping, mappings, metadata, text
from kube.resources import CLUSTER_ROLES, NAMESPACES, RBAC_GROUP
from kube.validation import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    invalid_for,
    label_selector_errors,
    not_found,
    not_supported,
    required,
    too_long,
)
from webhooks.garden.common import deletion, tolerations
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.operations import remove_annotation
from webhooks.garden.common.write import SERVICE_ACCOUNT_PREFIX, Right, Write, is_service_account
from webhooks.rules.shapes import items

GARDEN_NAMESPACE = "garden"
_SUBJECT = ("kind", "apiGroup", "name", "namespace")


def set_defaults(write: Write) -> None:
    spec = write.own_spec()
    for subject in ("createdBy", "owner"):
        if spec.get(subject):
            default_group(spec[subject])
    for member in members(spec):
        default_group(member)
        set_roles(member, roles(member))
    if spec.get("namespace") == GARDEN_NAMESPACE:
        tolerations.add_protection(spec)


def set_owner(write: Write) -> None:
    """Make the creator of a Project without owner its owner, and the owner the only member with that role."""
    spec = write.own_spec()
    if write.is_create:
        spec["createdBy"] = {"kind": "User", "apiGroup": RBAC_GROUP, "name": write.user.name}
        spec.setdefault("owner", _first_owner(spec) or dict(spec["createdBy"]))
    owner = spec.get("owner")
    if not owner:
        return
    if write.is_update and identity(owner) != identity(mapping(write.old_spec.get("owner"))):
        _hand_over(spec, owner)
    if not any(identity(member) == identity(owner) for member in members(spec)):
        member = _subject(owner)
        set_roles(member, (ADMIN, OWNER))
        items(spec, "members").append(member)


def _first_owner(spec: Object) -> Object | None:
    return next((_subject(member) for member in members(spec) if OWNER in roles(member)), None)


def _hand_over(spec: Object, owner: Object) -> None:
    for member in members(spec):
        held = roles(member)
        if identity(member) != identity(owner):
            set_roles(member, [role for role in held if role != OWNER])
        elif OWNER not in held:
            set_roles(member, (*held, OWNER))


def _subject(member: Object) -> Object:
    return {name: member[name] for name in _SUBJECT if member.get(name)}


who_confirmed_approval = deletion.confirmed_by(keys.CONFIRM_DUAL_APPROVAL, keys.DUAL_APPROVAL_CONFIRMED_BY)


def use_up_confirmation(write: Write) -> None:
    """Remove a used confirmation: it permits one change of the rule that two people have to delete."""
    if write.is_update and dual_approval.is_loosened(write.old_spec, write.spec):
        for name in (keys.CONFIRM_DUAL_APPROVAL, keys.DUAL_APPROVAL_CONFIRMED_BY):
            remove_annotation(write.new, name)


# --- members


LONGEST_EXTENSION_ROLE = 20
MOST_EXTENSION_ROLES = 20
"""Maximum per Project: each is a ClusterRole and a RoleBinding."""
OF_THE_SPEC = "spec.owner"
"""Right of the owner by that field: no role of a member has this name."""
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
    """Return the Project as findings number it: all roles of a member in one list, however they are stored."""
    spec = mapping(project.get("spec"))
    return {**project, "spec": {**spec, "members": [_as_numbered(member) for member in members(spec)]}}


def _as_numbered(member: Object) -> Object:
    numbered = {name: value for name, value in member.items() if name != "role"}
    default_group(numbered)
    return {**numbered, "roles": roles(member) or [VIEWER]}


def held_roles(spec: Object) -> set[tuple[Identity, str]]:
    """Return subjects and their roles that only some users may give, by `spec.owner` or as a member.

    An owner counts as a member even if that is not stored yet. As in the original, every user who may change a Project
    may give ServiceAccounts the roles of administrators and viewers.
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
    """Rule for `deprecations`: only about members that change, since all stored ones have `role`."""
    known = [(identity(member), roles(member)) for member in members(write.old_spec)]
    for index, member in enumerate(members(write.spec)):
        if member.get("role") and (identity(member), roles(member)) not in known:
            yield f"spec.members[{index}].role is deprecated: use roles"


def member_errors(write: Write) -> Iterator[Finding]:
    seen: set[Identity] = set()
    # The last by name, so that the order of members is irrelevant.
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
    """There are ClusterRoles for the extension roles of its members."""
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


# --- what it must be


GARDEN, GARDEN_PREFIX = "garden", "garden-"
MANAGE_MEMBERS = "manage-members"
_MANAGE = "manage human users or groups in .spec.members"
_WHO_MAY = (
    ": .spec.owner and roles in .spec.members are changed by the owner, "
    f'members with the role "{USER_ACCESS_MANAGER}", and who may "{MANAGE_MEMBERS}"'
)


def namespace_errors(write: Write) -> Iterator[Finding]:
    namespace = text(write.spec.get("namespace"))
    if namespace:
        yield from invalid_for("spec.namespace", namespace, dns_label_problems(namespace))
    is_of_projects = not namespace or namespace == GARDEN or namespace.startswith(GARDEN_PREFIX)
    if write.changed("spec", "namespace") and not is_of_projects:
        yield Denial(f".spec.namespace must start with {GARDEN_PREFIX}", "spec.namespace")


def namespace_taken(write: Write) -> Iterator[Finding]:
    """The namespace is that of no other Project."""
    namespace = text(write.spec.get("namespace"))
    projects = write.garden.by(PROJECTS, users.namespaces, Key("", namespace)) if namespace else ()
    if any(_name(other) != write.name for other in projects):
        yield Denial(f'namespace "{namespace}" is already used by another project', "spec.namespace")


def _name(project: Object) -> str:
    return text(metadata(project).get("name"))


def subjects(write: Write) -> Iterator[Finding]:
    for field in ("createdBy", "owner"):
        if write.spec.get(field):
            yield from subject_errors(f"spec.{field}", write.spec[field])
    yield from member_errors(write)


def toleration_errors(write: Write) -> Iterator[Finding]:
    given = mapping(write.spec.get("tolerations"))
    defaults, whitelist = mappings(given.get("defaults")), mappings(given.get("whitelist"))
    yield from tolerations.list_errors("spec.tolerations.defaults", defaults)
    yield from tolerations.list_errors("spec.tolerations.whitelist", whitelist)
    yield from tolerations.not_allowed("spec.tolerations.defaults", defaults, whitelist)


def approval_errors(write: Write) -> Iterator[Finding]:
    for index, approval in enumerate(mappings(write.spec.get("dualApprovalForDeletion"))):
        path = f"spec.dualApprovalForDeletion[{index}].selector"
        yield from label_selector_errors(path, mapping(approval.get("selector")))


def approval_stays(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: one person alone does not lift the rule that two have to delete."""
    if not dual_approval.is_loosened(write.old_spec, write.spec):
        return
    reason = dual_approval.refusal_for(
        write.user.name,
        write.old,
        confirmation=keys.CONFIRM_DUAL_APPROVAL,
        confirmed_by=keys.DUAL_APPROVAL_CONFIRMED_BY,
    )
    if reason:
        field = "spec.dualApprovalForDeletion"
        yield Denial(f"two people must remove or relax an entry of {field}: {reason}", field)


def rights(write: Write) -> Iterator[Right]:
    """Check custom verbs: not every user who may write a Project may change all of it."""
    if write.changed("spec", "tolerations", "whitelist"):
        yield _right(write, "modify-spec-tolerations-whitelist", "modify .spec.tolerations.whitelist")
    if write.spec.get("namespace") == GARDEN and write.changed("spec", "namespace"):
        denial = f'user "{write.user.name}" is not allowed to use the namespace "{GARDEN}" of operators for a project'
        yield Right(verb="update", resource=NAMESPACES, name=GARDEN, denial=f"{denial}: who may update it is")
    if _changes_members(write):
        yield _right(write, MANAGE_MEMBERS, _MANAGE, _WHO_MAY)


def _changes_members(write: Write) -> bool:
    """Whether a subject gets or loses a role, that of the owner included."""
    owner = mapping(write.spec.get("owner"))
    # On UPDATE the owner as stored: no user gets rights by becoming the owner.
    if _is_user(mapping(write.old_spec.get("owner")) if write.is_update else owner, write):
        return False
    held = held_roles(write.spec)
    if write.is_create:  # creators may choose the owner
        return any(who != identity(owner) for who, _ in held)
    return held != held_roles(write.old_spec)


def _is_user(owner: Object, write: Write) -> bool:
    kind, namespace, name = identity(owner)
    if kind == "Group":
        return name in write.user.groups
    if is_service_account(write.user.name):
        return (kind, namespace, name) == identity({"kind": "User", "name": write.user.name})
    return kind == "User" and name == write.user.name


def _right(write: Write, verb: str, what: str, who_may: str = "") -> Right:
    return Right(
        verb=verb,
        resource=PROJECTS,
        name=write.name,
        denial=f'user "{write.user.name}" is not allowed to {what} for "{PROJECTS.plural}"{who_may}',
    )


# --- the kind


PROJECT = Kind(
    definition=project.PROJECT,
    defaults=(set_defaults,),
    mutations=(set_owner, who_confirmed_approval, use_up_confirmation),
    checks=(
        namespace_errors,
        subjects,
        toleration_errors,
        approval_errors,
    ),
    changes=(approval_stays,),
    references=(namespace_taken, roles_carried),
    as_numbered=as_numbered,
    rights=(rights,),
    deprecations=(old_role,),
    deletions=(deletion.confirmed, deletion.in_order("its namespace and rights")),
    reads=(CLUSTER_ROLES, PROJECTS),
)
