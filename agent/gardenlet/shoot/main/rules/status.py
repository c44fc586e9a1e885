"""Status of a Shoot, from the start of an operation to its end."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.gardenlet.flow.graph import Snapshot, TaskFailure
from agent.gardenlet.shoot.main.rules import rotation
from gardener import conditions, operations
from gardener.error_codes import NOT_RETRIED
from gardener.garden.shoots import last_errors, last_operation, responsible_seed
from gardener.operations import DELETE, MIGRATE, RESTORE
from kube.clock import format_duration, format_time, time_or_none
from kube.objects import Object, integer, mapping, mappings, metadata, spec, text, texts
from kube.paths import at

INITIALIZE = "initializeOperation"
"""ID of the step before the tasks of a flow."""
_RETRIED = " Operation will be retried."
_BEGUN = {
    RESTORE: "Restoration of Shoot cluster initialized.",
    MIGRATE: "Preparation of Shoot cluster for migration initialized.",
    DELETE: "Deletion of Shoot cluster in progress.",
}
_SUCCEEDED = {RESTORE: "restored", MIGRATE: "prepared for migration", DELETE: "deleted"}
_HINTED = (
    *conditions.SHOOT_CONDITIONS,
    conditions.HIBERNATION_POSSIBLE,
    conditions.MAINTENANCE_PRECONDITIONS_SATISFIED,
)
"""Conditions and constraints that are outdated after an operation until they are checked again."""


def begun(shoot: Object, kind: str, *, gardener: Object, technical_id: str, now: datetime) -> Object:
    """Fields of the status when an operation begins. Args: kind: of operation."""
    status = mapping(shoot.get("status"))
    fields: Object = {
        "gardener": gardener,
        "observedGeneration": operations.generation(shoot),
        "technicalID": text(status.get("technicalID")) or technical_id,
        "lastErrors": [each for each in last_errors(shoot) if each.get("taskID") != INITIALIZE] or None,
        "lastOperation": operations.operation(kind, operations.PROCESSING, 0, begun_text(kind), now=now),
    }
    if _is_new_cycle(shoot, kind, gardener):
        fields["retryCycleStartTime"] = format_time(now)
    if kind not in {MIGRATE, DELETE}:
        fields |= {"seedName": responsible_seed(shoot), **rotation.begun(shoot, now=now)}
    return fields


def begun_text(kind: str) -> str:
    return _BEGUN.get(kind, "Reconciliation of Shoot cluster initialized.")


def _is_new_cycle(shoot: Object, kind: str, gardener: Object) -> bool:
    """Whether the retry duration, after which an operation fails for good, starts again."""
    status = mapping(shoot.get("status"))
    return (
        not status.get("retryCycleStartTime")
        or status.get("observedGeneration") != metadata(shoot).get("generation")
        or at(status, "gardener", "version") != gardener["version"]
        or (kind == DELETE and last_operation(shoot).get("type") != DELETE)
    )


def waiting_for_seed(shoot: Object, problem: str, *, now: datetime) -> Object:
    """Fields of the status while an operation waits for the Seed to be ready."""
    return waiting(shoot, f"{operations.WAITS_FOR_SEED}: {problem}", now=now)


def waiting(shoot: Object, reported: str, *, now: datetime) -> Object:
    """Fields of the status while the next operation waits, with the reason as description."""
    operation = {**last_operation(shoot), "description": reported}
    if operation == last_operation(shoot):
        return {}
    return {"lastOperation": {**operation, "lastUpdateTime": format_time(now)}}


def not_initialized(status: Object, kind: str, error: str, codes: Collection[str], *, now: datetime) -> Object:
    """The status when the inputs of an operation could not be determined.

    It is retried for ever. The error is only listed if it has codes, so that the user has to correct something.
    """
    reported = f"Could not initialize a new operation for Shoot cluster: {error}"
    ended = {**status, "lastOperation": operations.operation(kind, operations.ERROR, 0, reported, now=now)}
    if not codes:
        return ended
    others = [each for each in mappings(status.get("lastErrors")) if each.get("taskID") != INITIALIZE]
    return {**ended, "lastErrors": [*others, _error(reported, INITIALIZE, codes, now)]}


def progressing(status: Object, kind: str, snapshot: Snapshot, *, now: datetime) -> Object:
    """The status while a flow runs: errors of tasks that have not succeeded since, and of programs that have ended."""
    reported, ended = snapshot.description, snapshot.ended
    operation = operations.operation(kind, operations.PROCESSING, snapshot.progress, reported, now=now)
    before = mappings(status.get("lastErrors"))
    errors = [each for each in before if each.get("taskID") in snapshot.failed_before.difference(ended)]
    for task in sorted(ended):
        error = _error(f'task "{task}" waits: {ended[task]}', task, (), now)
        is_same = (each for each in before if each.get("description") == error["description"])
        errors.append(next(is_same, error))
    return {**status, "lastOperation": operation, "lastErrors": errors or None}


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of an operation.

    Attributes:
        description: a sentence that may start in lower case.
        errors: entries of `lastErrors`.
    """

    description: str
    errors: tuple[Object, ...]


def failure(description: str, failures: Iterable[TaskFailure], *, now: datetime) -> Failure:
    """Failure of a flow."""
    return Failure(description, tuple(_error(str(each), each.task, codes_of(each.error), now) for each in failures))


def unexpected(description: str, codes: Collection[str] = (), *, now: datetime) -> Failure:
    """Failure outside a flow."""
    return Failure(description, (_error(description, "", codes, now),))


def _error(description: str, task: str, codes: Collection[str], now: datetime) -> Object:
    reported: Object = {"description": description, "lastUpdateTime": format_time(now)}
    return reported | ({"taskID": task} if task else {}) | ({"codes": list(codes)} if codes else {})


def codes_of(error: Exception) -> list[str]:
    """Codes of an error."""
    return list(getattr(error, "codes", ()))


def failed(
    status: Object,
    kind: str,
    failed: Failure,
    *,
    retry_duration: float,
    progress: int | None = None,
    now: datetime,
) -> Object:
    """The status after a failure, which is final if only the user can help, or after the retry duration.

    Args:
        status: current status.
        kind: of operation.
        failed: the failure.
        retry_duration: seconds.
        progress: None: as last reported.
        now: of the failure.
    """
    if progress is None:
        progress = integer(at(status, "lastOperation", "progress"))
    description = failed.description[:1].upper() + failed.description[1:]
    is_hopeless = any(code in NOT_RETRIED for each in failed.errors for code in texts(each.get("codes")))
    is_over = _is_over(status, retry_duration, now)
    if is_over and not is_hopeless:
        description = f"{description} (retry duration of {format_duration(retry_duration)} exceeded)"
    is_final = is_hopeless or is_over
    operation = operations.operation(
        kind,
        operations.FAILED if is_final else operations.ERROR,
        progress,
        description if is_final else f"{description}{_RETRIED}",
        now=now,
    )
    ended = {**status, "lastOperation": operation, "lastErrors": list(failed.errors) or None}
    return {**ended, "retryCycleStartTime": None} if is_final else ended


def _is_over(status: Object, retry_duration: float, now: datetime) -> bool:
    started = time_or_none(status.get("retryCycleStartTime"))
    return started is not None and now - started > timedelta(seconds=retry_duration)


def succeeded(
    shoot: Object, status: Object, kind: str, *, rolled_out: Object, has_changed: bool = True, now: datetime
) -> Object:
    """The status after success.

    Args:
        shoot: as known.
        status: current status.
        kind: of operation.
        rolled_out: the reconciled Shoot; the current one may be newer.
        has_changed: whether the operation has changed anything; if not, conditions stay.
        now: time of the success.
    """
    reported = f"Shoot cluster has been successfully {_SUCCEEDED.get(kind, 'reconciled')}."
    ended = {
        **status,
        "lastOperation": operations.operation(kind, operations.SUCCEEDED, 100, reported, now=now),
        "lastErrors": None,
        "retryCycleStartTime": None,
        "hibernated": is_hibernated(rolled_out),
    }
    if kind != MIGRATE and has_changed:
        for name in ("conditions", "constraints"):
            ended[name] = conditions.to_be_checked(mappings(status.get(name)), _HINTED, now=now) or None
    if kind not in {MIGRATE, DELETE}:
        ended |= rotation.ended(rolled_out, status, now=now)
    if kind != DELETE:
        ended["seedName"] = spec(shoot).get("seedName") if kind == MIGRATE else responsible_seed(shoot)
    return ended


def is_deleted(shoot: Object) -> bool:
    """Whether the deletion has succeeded, so that only the Shoot object is left."""
    last = last_operation(shoot)
    return (last.get("type"), last.get("state")) == (DELETE, operations.SUCCEEDED)


def is_hibernated(shoot: Object) -> bool:
    """Whether the spec requests hibernation."""
    return at(spec(shoot), "hibernation", "enabled") is True
