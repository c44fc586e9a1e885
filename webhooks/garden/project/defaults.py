"""What a Project gets that its author has not written."""

from gardener import keys
from gardener.garden import dual_approval
from gardener.garden.members import ADMIN, OWNER, identity, members, roles
from kube.objects import Object, mapping
from kube.resources import RBAC_GROUP
from webhooks.garden.common import deletion, tolerations
from webhooks.garden.common.operations import remove_annotation
from webhooks.garden.common.write import Write
from webhooks.garden.project.members import default_group, set_roles
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
    """Who creates a Project without owner owns it, and an owner is a member who has this role and no other has it."""
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
    """It is for one change of the rule that two people have to delete."""
    if write.is_update and dual_approval.is_loosened(write.old_spec, write.spec):
        for name in (keys.CONFIRM_DUAL_APPROVAL, keys.DUAL_APPROVAL_CONFIRMED_BY):
            remove_annotation(write.new, name)
