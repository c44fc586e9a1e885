"""The contract between Gardener and extensions, for one extension object.

Gardener writes spec and annotations, the extension the status. A spec takes effect only with a *kick*: the annotation
that names an operation, and a timestamp that makes each kick a change. An answer counts only if it belongs to the last
kick: by its generation, and by its time.

    annotations = kick(OPERATION_RECONCILE, now=now, live=obj)
    answer = answer_of(obj, kicked=annotations[TIMESTAMP])

Answers have times of whole seconds, and an extension may crash between picking up a kick and reporting that. Its
previous report would look like the answer if both had the same second: so the time of a kick is in a later second than
the present answer, for which `pause_before_kick` may be needed. An extension that is kicked again while it works on the
same spec answers both kicks at once.

Pure: the caller decides how long to wait, and for what.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from gardener.error_codes import codes_in, merged
from gardener.keys import OPERATION, OPERATION_MIGRATE, OPERATION_RECONCILE, OPERATION_RESTORE, TIMESTAMP
from kube.clock import time_or_none
from kube.objects import Object, annotations, integer, is_deleting, mapping, metadata, text, texts

SUCCEEDED, PROCESSING, ERROR, FAILED = "Succeeded", "Processing", "Error", "Failed"
MIGRATE = "Migrate"
_REPORTED = {OPERATION_MIGRATE: MIGRATE, OPERATION_RESTORE: "Restore"}
"""Types of the last operation by the requested operation."""
_ENDED = (ERROR, FAILED)
_SECOND, _TICK = timedelta(seconds=1), timedelta(microseconds=1)
_MOST_SKEW = timedelta(minutes=10)
"""Maximum difference between the clocks of both sides; times beyond it are invalid and ignored."""


# --- kicks


def timestamp(now: datetime) -> str:
    """Value of the annotation: RFC 3339 in UTC, with fractions of a second."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def kick(operation: str, *, now: datetime, live: Object | None = None) -> dict[str, str]:
    """The annotations of a kick, to be written in the same request as the spec.

    Args: live: the object that is kicked; None: a new one.
    """
    return {OPERATION: operation, TIMESTAMP: timestamp(_moment(live or {}, now))}


def pause_before_kick(live: Object, *, now: datetime) -> float:
    """Seconds to wait, 1 at most: an answer to a kick written then has a later time than the present one."""
    return min((after_success(live, now) - now).total_seconds(), 1.0)


def _moment(live: Object, now: datetime) -> datetime:
    """Time of a kick: differs from the previous kick, and is later than the present answer."""
    moment = after_success(live, now)
    return moment + _TICK if timestamp(moment) == annotations(live).get(TIMESTAMP) else moment


def after_success(live: Object, now: datetime) -> datetime:
    """The first moment from now on that is later than a reported success, in its precision.

    Only a success can be mistaken for the answer; an extension that fails writes its error again and again.
    """
    last = last_operation(live)
    answered = time_or_none(last.get("lastUpdateTime")) if last.get("state") == SUCCEEDED else None
    if answered is None or answered - now > _MOST_SKEW:
        return now
    return max(now, answered + (_TICK if answered.microsecond else _SECOND))


def is_unanswered(obj: Object) -> bool:
    """Whether the kick of its present spec got lost: no annotation announces it, and no status answers it."""
    return OPERATION not in annotations(obj) and observed_generation(obj) < integer(metadata(obj).get("generation"))


def needs_kick(
    obj: Object, *, spec_changed: bool, operation: str = OPERATION_RECONCILE, data_changed: str = ""
) -> bool:
    """Whether an object that is kicked only if needed needs a kick.

    It does if the spec or the operation differs, or if the answer is missing, bad or outdated.

    Args:
        obj: the object.
        spec_changed: whether its spec is about to change.
        operation: the operation to request.
        data_changed: last change of the data that the spec refers to; empty: it refers to none.
    """
    requested, last = annotations(obj).get(OPERATION), last_operation(obj)
    if spec_changed or is_unanswered(obj) or requested not in (None, operation):
        return True
    if not last:
        return requested is None
    is_bad = last.get("state") != SUCCEEDED or last.get("type") == MIGRATE or bool(last_error(obj))
    return is_bad or _is_older(last, annotations(obj).get(TIMESTAMP, "")) or _is_older(last, data_changed)


def needs_repeated_kick(obj: Object, *, spec_changed: bool, data_changed: str = "", **_: str) -> bool:
    """Whether an object needs a kick that is kicked by each of many passes, none of which waits for the answer.

    Unlike `needs_kick`, an extension that is working, or retries after an error, is left alone.
    """
    if spec_changed or is_unanswered(obj):
        return True
    if not (last := last_operation(obj)):
        return OPERATION not in annotations(obj)
    return last.get("state") == FAILED or _is_older(last, data_changed)


# --- reading the answer


@dataclass(frozen=True, slots=True)
class Ready:
    """The extension has completed the last request."""


@dataclass(frozen=True, slots=True)
class Pending:
    """It has not answered yet; the reason states what is missing."""

    reason: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """It reports an error. It may still recover, so the consequences depend on how long the error lasts."""

    reason: str
    codes: tuple[str, ...] = ()


Answer = Ready | Pending | Trouble


def answer_of(obj: Object, *, kicked: str = "") -> Answer:
    """Answer of the status to the present spec.

    Args: kicked: the timestamp of the kick whose answer is wanted; empty: the one in the annotation.
    """
    missing = _missing(obj, kicked)
    trouble = trouble_of(obj) if not missing else answered_error(obj, kicked=kicked)
    if trouble is not None:
        return trouble
    return pending(obj, missing) if missing else Ready()


def answered_error(obj: Object, *, kicked: str = "") -> Trouble | None:
    """The error that answers the last kick; None also if the error in the status is older.

    Args: kicked: as of `answer_of`.
    """
    noted, error = annotations(obj).get(TIMESTAMP, ""), last_error(obj)
    if (kicked and noted != kicked) or (OPERATION in annotations(obj) and not is_deleting(obj)):
        return None
    dated = error if error.get("lastUpdateTime") else last_operation(obj)
    return None if dated.get("lastUpdateTime") and _is_older(dated, noted) else trouble_of(obj)


def pending(obj: Object, reason: str) -> Pending:
    """Pending, with the error that the extension reported before the kick, if there is one."""
    return Pending(f"{reason}{_reported_before(obj)}")


def _reported_before(obj: Object) -> str:
    reported = text(last_error(obj).get("description"))
    return f"; before this request, it reported: {reported}" if reported else ""


def _missing(obj: Object, kicked: str) -> str:
    """Missing part until the kick is answered successfully; empty if nothing is missing."""
    generation, observed = integer(metadata(obj).get("generation")), observed_generation(obj)
    if is_deleting(obj):
        return "it is being deleted"
    if observed != generation:
        return f"observed generation outdated ({observed}/{generation})"
    if operation := annotations(obj).get(OPERATION):
        return f'gardener operation "{operation}" is not yet picked up by controller'
    last = last_operation(obj)
    if not last:
        return "extension did not record a last operation yet"
    if last.get("state") != SUCCEEDED:
        return f"extension state is not Succeeded but {text(last.get('state'))}"
    if last.get("type") == MIGRATE:
        return "the extension has migrated it, and has not restored it yet"
    noted = annotations(obj).get(TIMESTAMP, "")
    if kicked and noted != kicked:
        return f'annotation "{TIMESTAMP}" is not of this request but {noted or "missing"}'
    return "last operation is older than the request" if _is_older(last, noted) else ""


def trouble_of(obj: Object) -> Trouble | None:
    """The error that the extension reports, with its codes and those of its text."""
    error = last_error(obj)
    if not error:
        return None
    reported = text(error.get("description"))
    return Trouble(
        f"error during reconciliation: {reported}", tuple(merged(texts(error.get("codes")), codes_in(reported)))
    )


def standing_of(obj: Object) -> Answer:
    """State of the extension object, independent of kicks: for controllers that mirror it and react to each state."""
    last = last_operation(obj)
    if not last:
        return Trouble("extension did not record a last operation yet")
    if (trouble := trouble_of(obj)) is not None:
        return trouble
    state = text(last.get("state"))
    if state in _ENDED:
        return Trouble(f"extension state is not Succeeded but {state}")
    return Ready() if state == SUCCEEDED else Pending(f"extension state is not Succeeded but {state}")


def has_succeeded(obj: Object) -> bool:
    """Whether the last operation has succeeded, and no other one is requested now."""
    return last_operation(obj).get("state") == SUCCEEDED and OPERATION not in annotations(obj)


def is_migrated(obj: Object) -> bool:
    """Whether the extension has released the resources of the object."""
    last = last_operation(obj)
    is_asked = annotations(obj).get(OPERATION) == OPERATION_MIGRATE
    return not is_asked and (last.get("type"), last.get("state")) == (MIGRATE, SUCCEEDED)


def responds(obj: Object, operation: str) -> bool:
    """Whether the last operation responds to a request for `operation`.

    A migration or restoration is recognized by its type, independent of clocks; a reconciliation only by its time.
    """
    if (reported := _REPORTED.get(operation)) is not None:
        return last_operation(obj).get("type") == reported
    return not _is_older(last_operation(obj), annotations(obj).get(TIMESTAMP, ""))


def last_operation(obj: Mapping[str, Any]) -> Object:
    return mapping(mapping(obj.get("status")).get("lastOperation"))


def last_error(obj: Mapping[str, Any]) -> Object:
    return mapping(mapping(obj.get("status")).get("lastError"))


def observed_generation(obj: Mapping[str, Any]) -> int:
    return integer(mapping(obj.get("status")).get("observedGeneration"))


def _is_older(answer: Object, requested: str) -> bool:
    """Whether a last operation, or error, was updated before the request, in the precision of both times."""
    asked_at, updated = time_or_none(requested), time_or_none(answer.get("lastUpdateTime"))
    if asked_at is None or updated is None:
        return asked_at is not None
    if not updated.microsecond:
        asked_at = asked_at.replace(microsecond=0)
    return updated < asked_at
