"""What a Project must be, and who may change what of it."""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import PROJECTS
from gardener.garden import dual_approval, users
from gardener.garden.members import USER_ACCESS_MANAGER, identity
from kube.names import dns_label_problems
from kube.objects import Key, Object, mapping, mappings, metadata, text
from kube.resources import NAMESPACES
from kube.validation import invalid_for, label_selector_errors
from webhooks.garden.common import tolerations
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Right, Write, is_service_account
from webhooks.garden.project.members import held_roles, member_errors, subject_errors

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
    if namespace and write.is_create and namespace != GARDEN and not namespace.startswith(GARDEN_PREFIX):
        yield Denial(f".spec.namespace must start with {GARDEN_PREFIX}", "spec.namespace")


def namespace_taken(write: Write) -> Iterator[Finding]:
    namespace = text(write.spec.get("namespace"))
    projects = write.garden.by(PROJECTS, users.namespaces, Key("", namespace))
    if namespace and any(_name(other) != write.name for other in projects):
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
    """For `changes`: what two people have to delete, one alone does not make free."""
    if not dual_approval.is_loosened(write.old_spec, write.spec):
        return
    told = dual_approval.refusal_for(
        write.user.name,
        write.old,
        confirmation=keys.CONFIRM_DUAL_APPROVAL,
        confirmed_by=keys.DUAL_APPROVAL_CONFIRMED_BY,
    )
    if told:
        field = "spec.dualApprovalForDeletion"
        yield Denial(f"two people have to remove or loosen an entry of {field}: {told}", field)


def rights(write: Write) -> Iterator[Right]:
    """Custom verbs: not everybody who may write a Project may change all of it."""
    if write.changed("spec", "tolerations", "whitelist"):
        yield _right(write, "modify-spec-tolerations-whitelist", "modify .spec.tolerations.whitelist")
    if write.spec.get("namespace") == GARDEN and write.changed("spec", "namespace"):
        denial = (
            f'user "{write.user.name}" is not allowed to make the operators\' namespace "{GARDEN}" that of a project'
        )
        yield Right(verb="update", resource=NAMESPACES, name=GARDEN, denial=f"{denial}: who may update it is")
    if _changes_members(write):
        yield _right(write, MANAGE_MEMBERS, _MANAGE, _WHO_MAY)


def _changes_members(write: Write) -> bool:
    """Whether anybody gets or loses a role, be it that of the owner."""
    owner = mapping(write.spec.get("owner"))
    # On UPDATE the owner as stored: nobody gets rights by making himself the owner.
    if _is_user(mapping(write.old_spec.get("owner")) if write.is_update else owner, write):
        return False
    held = held_roles(write.spec)
    if write.is_create:  # who may do that may say whose it is
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
