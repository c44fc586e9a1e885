"""How long a Shoot lives, by the Quotas of its credentials: the time of its end is an annotation.

Its users may put the end off, but not for longer than the Quotas allow. What two people have to delete, one alone does
not bring to its end earlier either. Reads what `quota` and `approval` read.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from gardener import keys
from gardener.garden.dual_approval import NOTICE, is_person
from gardener.garden.lifetimes import end
from kube.objects import Object, annotations, spec
from kube.validation import invalid
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot.approval import approval_of, refusal
from webhooks.garden.shoot.quota import quotas_of

_PATH = f"metadata.annotations[{keys.SHOOT_EXPIRATION}]"
_SKEW = timedelta(days=1)
"""Between the clocks of who writes and who checks an end with `NOTICE`; much, since it costs nothing."""
_BINDINGS = ("credentialsBindingName", "secretBindingName")


def expiration_errors(write: Write) -> Iterator[Finding]:
    """For `checks`."""
    written = annotations(write.new).get(keys.SHOOT_EXPIRATION)
    if written is not None and _end(write.new) is None:
        yield invalid(_PATH, written, "must be a time such as 2026-01-31T12:00:00Z")


# --- not too late


def lifetime_of_new(write: Write) -> Iterator[Finding]:
    """For `references`."""
    if write.is_create:
        yield from _too_long(write)


def lifetime_changes(write: Write) -> Iterator[Finding]:
    """For `changes`: how far the end may be put off, also by other credentials."""
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
    told = f"requested shoot expiration time is too long. Can only be extended by {days} day(s)"
    yield Denial(told, _PATH)


def _is_notice(write: Write) -> bool:
    """Whether the controller gives the Shoot its first end."""
    is_first = write.is_update and _end(write.old) is None
    return is_first and not is_person(write.user.name) and approval_of(write, write.old) is not None


def _allowed_days(write: Write) -> int | None:
    """None: its Quotas set no limit."""
    lifetimes = (spec(quota).get("clusterLifetimeDays") for quota in quotas_of(write))
    return min((each for each in lifetimes if isinstance(each, int)), default=None)


def _is_after(until: datetime, now: datetime, days: int) -> bool:
    try:
        return until > now + timedelta(days=days)
    except OverflowError:
        return days < 0


# --- not too early


def end_not_brought_forward(write: Write) -> Iterator[Finding]:
    """For `changes`."""
    if not write.is_deleting and _is_moved(write) and _is_forward(write) and (told := refusal(write, write.old)):
        yield Denial(f"two people have to delete the Shoot, so one alone cannot bring its end forward: {told}", _PATH)


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
