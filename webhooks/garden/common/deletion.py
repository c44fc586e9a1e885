"""Deletions that somebody has to confirm, and those for which that must be somebody else (four eyes)."""

from collections.abc import Iterator

from gardener import keys
from gardener.garden.resources import PROJECTS
from kube.objects import Object, annotations, is_truthy, labels, mapping, mappings, matches_label_selector
from webhooks.garden.common.metadata import set_annotation
from webhooks.garden.findings import Denial
from webhooks.garden.operations import remove_annotation
from webhooks.garden.write import Write, is_service_account


def is_confirmed(obj: Object) -> bool:
    return is_truthy(annotations(obj).get(keys.CONFIRM_DELETION))


def confirmed(write: Write) -> Iterator[Denial]:
    """For `deletions`."""
    if not is_confirmed(write.new):
        yield Denial(f'must have a "{keys.CONFIRM_DELETION}" annotation to delete')


def remember_who_confirmed(write: Write) -> None:
    """For `mutations`: the annotation says who confirmed first, and nobody can forge it."""
    if not is_confirmed(write.new):
        remove_annotation(write.new, keys.DELETION_CONFIRMED_BY)
    elif not is_confirmed(write.old):
        set_annotation(write.new, keys.DELETION_CONFIRMED_BY, write.user.name)
    elif (before := annotations(write.old).get(keys.DELETION_CONFIRMED_BY)) is not None:
        set_annotation(write.new, keys.DELETION_CONFIRMED_BY, before)
    else:
        remove_annotation(write.new, keys.DELETION_CONFIRMED_BY)


def by_another_user(write: Write) -> Iterator[Denial]:
    """For `deletions` of Shoots; reads `PROJECTS`. The Project of the namespace says whether it takes two."""
    for project in write.garden.by(PROJECTS, "namespace", write.namespace):
        if _takes_two(project, write) and annotations(write.new).get(keys.DELETION_CONFIRMED_BY) == write.user.name:
            yield Denial(
                "you are not allowed to both confirm the deletion and send the actual DELETE request - "
                "another subject must perform the deletion"
            )


def _takes_two(project: Object, write: Write) -> bool:
    configured = mappings(mapping(project.get("spec")).get("dualApprovalForDeletion"))
    approval = next((each for each in configured if each.get("resource") == "shoots"), None)
    if approval is None or not _selects(mapping(approval.get("selector")), write.new):
        return False
    return not is_service_account(write.user.name) or approval.get("includeServiceAccounts") is not False


def _selects(selector: Object, obj: Object) -> bool:
    try:
        return matches_label_selector(selector, labels(obj))
    except ValueError:
        return True  # Nobody knows what was meant: two users are the safe choice.
