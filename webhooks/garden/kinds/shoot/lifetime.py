"""End of a Shoot: expiration of its lifetime, and users who may delete it.

The time of its end is an annotation. Its users may postpone it, but not for longer than the Quotas of its credentials
allow. If two people have to delete a Shoot (see `gardener.garden.dual_approval`), one alone can neither delete it nor
bring its end forward. Reads `PROJECTS`, `MANAGED_SEED_SETS`, and the kinds that `quota` reads.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from gardener import keys
from gardener.api.garden import MANAGED_SEED_SETS, PROJECTS
from gardener.garden import dual_approval, users
from gardener.garden.dual_approval import NOTICE, is_person
from gardener.garden.lifetimes import end
from gardener.garden.managed_seed_sets import is_named_by
from kube.objects import Key, Object, annotations, controller_of, integer, is_deleting, labels, mapping, spec, text, uid
from kube.validation import invalid
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write
from webhooks.garden.kinds.shoot.quota import quotas_of

_OWN_LABELS = "gardener.cloud"
"""Domain of labels that controllers manage."""


def approval_of(write: Write, shoot: Object) -> Object | None:
    """Return the rule that applies to a Shoot, old or new."""
    return dual_approval.approval_for(shoot, write.garden.by(PROJECTS, users.namespaces, Key("", write.namespace)))


def refusal(write: Write, shoot: Object) -> str:
    """Return the reason why the user may not delete the stored Shoot; empty if they may."""
    approval = approval_of(write, shoot)
    if approval is None or dual_approval.exempts(approval, write.user.name):
        return ""
    return dual_approval.refusal_for(
        write.user.name, shoot, confirmation=keys.CONFIRM_DELETION, confirmed_by=keys.DELETION_CONFIRMED_BY
    )


def kept_under_rule(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: other labels could exempt the Shoot from the rule."""
    if write.is_deleting or not write.changed("metadata", "labels") or approval_of(write, write.new) is not None:
        return
    if not _is_bookkeeping(write) and (reason := refusal(write, write.old)):
        yield Denial(
            f"two people must delete the Shoot, and other labels would bypass this: {reason}",
            "metadata.labels",
        )


def _is_bookkeeping(write: Write) -> bool:
    if dual_approval.is_person(write.user.name):
        return False
    changed = labels(write.old).items() ^ labels(write.new).items()
    return all(name.partition("/")[0].endswith(_OWN_LABELS) for name, _ in changed)


# --- how long it lives


_PATH = f"metadata.annotations[{keys.SHOOT_EXPIRATION}]"
_SKEW = timedelta(days=1)
"""Maximum difference of the clocks that set and check an end with `NOTICE`; large, since it costs nothing."""
_BINDINGS = ("credentialsBindingName", "secretBindingName")


def expiration_errors(write: Write) -> Iterator[Finding]:
    """Rule for `checks`."""
    written = annotations(write.new).get(keys.SHOOT_EXPIRATION)
    if written is not None and _end(write.new) is None:
        yield invalid(_PATH, written, "must be a time such as 2026-01-31T12:00:00Z")


# --- not too late


def lifetime_of_new(write: Write) -> Iterator[Finding]:
    """It does not live longer than its quotas allow."""
    if write.is_create:
        yield from _too_long(write)


def lifetime_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: limits postponement of the end, also by other credentials."""
    if _is_moved(write) or any(write.changed("spec", field) for field in _BINDINGS):
        yield from _too_long(write)


def _is_moved(write: Write) -> bool:
    return annotations(write.new).get(keys.SHOOT_EXPIRATION) != annotations(write.old).get(keys.SHOOT_EXPIRATION)


def _too_long(write: Write) -> Iterator[Finding]:
    until = _end(write.new)
    days = None if until is None else _allowed_days(write)
    if until is None or days is None or not _is_after(until, write.now, days):
        return
    if _is_notice(write) and not _is_after(until, write.now + _SKEW, NOTICE.days):
        return
    message = f"requested shoot expiration time is too long. Can only be extended by {days} day(s)"
    yield Denial(message, _PATH)


def _is_notice(write: Write) -> bool:
    """Whether the controller sets the first end of the Shoot."""
    is_first = write.is_update and _end(write.old) is None
    return is_first and not is_person(write.user.name) and approval_of(write, write.old) is not None


def _allowed_days(write: Write) -> int | None:
    """Return the days allowed by its Quotas; None if there is no limit."""
    lifetimes = (spec(quota).get("clusterLifetimeDays") for quota in quotas_of(write))
    return min((each for each in lifetimes if isinstance(each, int)), default=None)


def _is_after(until: datetime, now: datetime, days: int) -> bool:
    try:
        return until > now + timedelta(days=days)
    except OverflowError:
        return days < 0


# --- not too early


def end_not_brought_forward(write: Write) -> Iterator[Finding]:
    """Rule for `changes`."""
    if not write.is_deleting and _is_moved(write) and _is_forward(write) and (reason := refusal(write, write.old)):
        yield Denial(
            f"two people must delete the Shoot, so one person cannot bring its expiration forward: {reason}", _PATH
        )


def _is_forward(write: Write) -> bool:
    before, after = _end(write.old), _end(write.new)
    if after is None:
        return before is not None and _allowed_days(write) is not None
    return after < (write.now + NOTICE - _SKEW if before is None else before)


def has_expired(write: Write) -> bool:
    until = _end(write.new)
    return until is not None and until < write.now and _allowed_days(write) is not None


def _end(shoot: Object) -> datetime | None:
    try:
        return end(shoot)
    except ValueError:
        return None


# --- deletion
#
# Controllers delete it at its end: its lifetime is over, or its set has to have fewer replicas.


_SAME_USER = (
    "you are not allowed to both confirm the deletion and send the actual DELETE request - "
    "another subject must perform the deletion"
)


def by_two_people(write: Write) -> Iterator[Denial]:
    """Rule for `deletions`."""
    if is_deleting(write.new) or not (reason := refusal(write, write.new)):
        return
    if not is_person(write.user.name) and (has_expired(write) or _is_scaled_in(write)):
        return
    confirmer = annotations(write.new).get(keys.DELETION_CONFIRMED_BY)
    yield Denial(_SAME_USER if confirmer == write.user.name else f"two people must delete the Shoot: {reason}")


def _is_scaled_in(write: Write) -> bool:
    owner = mapping(controller_of(write.new))
    name = text(owner.get("name"))
    seed_set = write.garden.get(MANAGED_SEED_SETS, name, write.namespace)
    if seed_set is None or owner.get("uid") != uid(seed_set) or not is_named_by(name, write.new):
        return False
    there = integer(mapping(seed_set.get("status")).get("replicas"))
    return is_deleting(seed_set) or there > integer(spec(seed_set).get("replicas"))
