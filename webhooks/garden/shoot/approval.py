"""Shoots that two people have to delete: see `gardener.garden.dual_approval`. Reads `PROJECTS`."""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import PROJECTS
from gardener.garden import dual_approval, users
from kube.objects import Key, Object, labels
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write

_OWN_LABELS = "gardener.cloud"
"""The domain of labels that controllers keep."""


def approval_of(write: Write, shoot: Object) -> Object | None:
    """The rule that a Shoot, old or new, is under."""
    return dual_approval.approval_for(shoot, write.garden.by(PROJECTS, users.namespaces, Key("", write.namespace)))


def refusal(write: Write, shoot: Object) -> str:
    """Why the user may not delete the stored Shoot; empty: they may."""
    approval = approval_of(write, shoot)
    if approval is None or dual_approval.exempts(approval, write.user.name):
        return ""
    return dual_approval.refusal_for(
        write.user.name, shoot, confirmation=keys.CONFIRM_DELETION, confirmed_by=keys.DELETION_CONFIRMED_BY
    )


def kept_under_rule(write: Write) -> Iterator[Finding]:
    """For `changes`: with other labels the rule may not be about the Shoot any more."""
    if write.is_deleting or not write.changed("metadata", "labels") or approval_of(write, write.new) is not None:
        return
    if not _is_bookkeeping(write) and (told := refusal(write, write.old)):
        yield Denial(
            f"two people have to delete the Shoot, and with other labels they would not have to: {told}",
            "metadata.labels",
        )


def _is_bookkeeping(write: Write) -> bool:
    if dual_approval.is_person(write.user.name):
        return False
    changed = labels(write.old).items() ^ labels(write.new).items()
    return all(name.partition("/")[0].endswith(_OWN_LABELS) for name, _ in changed)
