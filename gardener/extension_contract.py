"""The contract between Gardener and extensions, about one extension object.

Gardener writes spec and annotations, the extension the status. A spec takes effect only with a *kick*: the annotation
that names an operation, and a timestamp that makes each kick a change. An answer counts only if it belongs to what was
asked last: by its generation, and by its time.

    annotations = kick(OPERATION_RECONCILE, now=now)
    answer = answer_of(obj, kicked=annotations[TIMESTAMP])

Pure: how long to wait, and for what, is up to whoever asks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gardener.error_codes import codes_in, merged
from gardener.keys import OPERATION, OPERATION_MIGRATE, TIMESTAMP
from kube.clock import time_or_none
from kube.objects import Object, annotations, integer, mapping, metadata, text, texts

SUCCEEDED, PROCESSING, ERROR, FAILED = "Succeeded", "Processing", "Error", "Failed"
MIGRATE = "Migrate"
_ENDED = (ERROR, FAILED)


# --- asking


def timestamp(now: datetime) -> str:
    """As it stands in the annotation: RFC 3339 in UTC, with fractions of a second."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def kick(operation: str, *, now: datetime) -> dict[str, str]:
    """The annotations of a kick, to be written in the same request as the spec."""
    return {OPERATION: operation, TIMESTAMP: timestamp(now)}


def is_unanswered(obj: Object) -> bool:
    """Whether the kick of its present spec got lost: nothing announces it, and no status answers it."""
    return OPERATION not in annotations(obj) and observed_generation(obj) < integer(metadata(obj).get("generation"))


def needs_kick(obj: Object, *, spec_changed: bool) -> bool:
    """Whether an object that is kicked only if needed has to be.

    That is: something else is asked for than before, the answer is missing, or it is a bad one or an old one.
    """
    if spec_changed or is_unanswered(obj):
        return True
    operation = last_operation(obj)
    if not operation:
        return OPERATION not in annotations(obj)
    return operation.get("state") != SUCCEEDED or _is_older(operation, annotations(obj).get(TIMESTAMP, ""))


# --- reading the answer


@dataclass(frozen=True, slots=True)
class Ready:
    """The extension has done what was asked last."""


@dataclass(frozen=True, slots=True)
class Pending:
    """It has not answered yet; the reason says what is missing."""

    reason: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """It reports an error. It may still mend it, so what follows depends on how long that lasts."""

    reason: str
    codes: tuple[str, ...] = ()


Answer = Ready | Pending | Trouble


def answer_of(obj: Object, *, kicked: str = "") -> Answer:
    """What the status says to the present spec.

    Args: kicked: the timestamp of the kick that is to be answered; empty: the one that stands in the annotation.
    """
    if (trouble := trouble_of(obj)) is not None:
        return trouble
    generation, observed = integer(metadata(obj).get("generation")), observed_generation(obj)
    if observed != generation:
        return Pending(f"observed generation outdated ({observed}/{generation})")
    if operation := annotations(obj).get(OPERATION):
        return Pending(f'gardener operation "{operation}" is not yet picked up by controller')
    last = last_operation(obj)
    if not last:
        return Pending("extension did not record a last operation yet")
    if last.get("state") != SUCCEEDED:
        return Pending(f"extension state is not Succeeded but {text(last.get('state'))}")
    noted = annotations(obj).get(TIMESTAMP, "")
    if kicked and noted != kicked:
        return Pending(f'annotation "{TIMESTAMP}" is not of this request but {noted or "missing"}')
    if _is_older(last, noted):
        return Pending("last operation is older than the request")
    return Ready()


def trouble_of(obj: Object) -> Trouble | None:
    """The error that the extension reports, with its codes and those of its text."""
    error = last_error(obj)
    if not error:
        return None
    said = text(error.get("description"))
    return Trouble(f"error during reconciliation: {said}", tuple(merged(texts(error.get("codes")), codes_in(said))))


def standing_of(obj: Object) -> Answer:
    """How the extension object is, whoever asked for what: for who mirrors it and reacts to each of its states."""
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
    """Whether the last operation has ended well, and nothing else is asked for by now."""
    return last_operation(obj).get("state") == SUCCEEDED and OPERATION not in annotations(obj)


def is_migrated(obj: Object) -> bool:
    """Whether the extension has let go of what belongs to the object."""
    last = last_operation(obj)
    is_asked = annotations(obj).get(OPERATION) == OPERATION_MIGRATE
    return not is_asked and (last.get("type"), last.get("state")) == (MIGRATE, SUCCEEDED)


def last_operation(obj: Mapping[str, Any]) -> Object:
    return mapping(mapping(obj.get("status")).get("lastOperation"))


def last_error(obj: Mapping[str, Any]) -> Object:
    return mapping(mapping(obj.get("status")).get("lastError"))


def observed_generation(obj: Mapping[str, Any]) -> int:
    return integer(mapping(obj.get("status")).get("observedGeneration"))


def _is_older(operation: Object, asked: str) -> bool:
    """Whether an operation was updated last before it was asked for, in the precision that both times have."""
    asked_at, updated = time_or_none(asked), time_or_none(operation.get("lastUpdateTime"))
    if asked_at is None or updated is None:
        return asked_at is not None
    if not updated.microsecond:
        asked_at = asked_at.replace(microsecond=0)
    return updated < asked_at
