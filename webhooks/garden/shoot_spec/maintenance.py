"""Maintenance time window, and hibernation: schedules, and conditions for hibernating a cluster."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from gardener.conditions import HIBERNATION_POSSIBLE, constraint
from gardener.garden.cron import Cron, parse_cron
from gardener.garden.rotations import COMPLETING, ENCRYPTION_KEY, PREPARES, SERVICE_ACCOUNT_KEY
from gardener.garden.rotations import phase as phase_of
from gardener.garden.shoots import SUCCEEDED, last_operation, seeds_of
from gardener.garden.windows import LONGEST, SHORTEST, parse_window
from gardener.operations import CREATE, MIGRATE, RESTORE
from kube.clock import format_duration
from kube.objects import Object, text, texts
from kube.paths import at
from kube.validation import FieldError, duplicate, forbidden, invalid, required
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import encrypted_resources, is_to_hibernate, status

_WINDOW = "spec.maintenance.timeWindow"
_SCHEDULES = "spec.hibernation.schedules"
_LEAP_YEAR = datetime(2024, 1, 1, tzinfo=UTC)
"""Start of a search: all existing days occur within a few years from here."""


# --- maintenance


def window_errors(write: Write) -> Iterator[Finding]:
    maintenance: Object = write.spec.get("maintenance") or {}
    window = maintenance.get("timeWindow")
    if not window:
        return
    begin, end = window.get("begin") or "", window.get("end") or ""
    try:
        length = parse_window(begin, end).length
    except ValueError as error:
        yield invalid(f"{_WINDOW}.begin/end", {"begin": begin, "end": end}, f"{error}")
        return
    if length < SHORTEST:
        yield invalid(_WINDOW, _duration(length), f"time window must not be smaller than {_duration(SHORTEST)}")
    if length > LONGEST:
        yield invalid(_WINDOW, _duration(length), f"time window must not be greater than {_duration(LONGEST)}")


def _duration(length: timedelta) -> str:
    return format_duration(length.total_seconds())


# --- schedules


def schedule_errors(write: Write) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, schedule in enumerate(_schedules(write.spec)):
        path = f"{_SCHEDULES}[{index}]"
        if not schedule.get("start") and not schedule.get("end"):
            yield required(f"{path}.start/end", "either start or end has to be provided")
        for field in ("start", "end"):
            if expression := schedule.get(field):
                yield from _cron_errors(f"{path}.{field}", expression, seen)
        location = schedule.get("location")
        if location and _zone(location) is None and _knows_zones():
            yield invalid(f"{path}.location", location, f"not a valid location: unknown time zone {location}")


def _schedules(spec: Object) -> list[Object]:
    hibernation = spec.get("hibernation") or {}
    return hibernation.get("schedules") or []


def _cron_errors(path: str, expression: str, seen: set[str]) -> Iterator[FieldError]:
    try:
        parse_cron(expression)
    except ValueError as error:
        yield invalid(path, expression, f"not a valid cron spec: {error}")
    if expression in seen:
        yield duplicate(path, expression)
    seen.add(expression)


def _zone(location: str) -> ZoneInfo | timezone | None:
    if location in {"", "UTC"}:
        return UTC
    try:
        return ZoneInfo(location)
    except (OSError, ValueError, KeyError):
        return None


@cache
def _knows_zones() -> bool:
    """Whether the host has the database of time zones, which some images lack."""
    return bool(available_timezones())


def schedule_warnings(write: Write) -> Iterator[str]:
    """Warn about expressions that never match, and clusters that hibernate in their maintenance time window."""
    for index, schedule in enumerate(_schedules(write.spec)):
        for field in ("start", "end"):
            expression = schedule.get(field)
            if not expression:
                continue
            try:
                comes = _ever_comes(expression)
            except ValueError:
                continue
            if not comes:
                yield f'{_SCHEDULES}[{index}].{field}: "{expression}" never occurs; correct it'
            elif field == "start" and _is_in_window(write, schedule, expression):
                yield f"{_SCHEDULES}[{index}].start: the cluster is hibernated in its maintenance time window"


@lru_cache(maxsize=1024)
def _ever_comes(expression: str) -> bool:
    """Whether there is any time that matches.

    Raises:
        ValueError: the expression is invalid.
    """
    return parse_cron(expression).next(_LEAP_YEAR) is not None


def _is_in_window(write: Write, schedule: Object, expression: str) -> bool:
    window, zone = at(write.spec, "maintenance", "timeWindow") or {}, _zone(schedule.get("location") or "")
    offset = None if zone is UTC else write.now.astimezone(zone).utcoffset()
    try:
        return _falls_into_window(expression, offset or timedelta(), window.get("begin") or "", window.get("end") or "")
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def _falls_into_window(expression: str, offset: timedelta, begin: str, end: str) -> bool:
    """Whether any matching time is in the window.

    Raises:
        ValueError: the expression or the window is invalid.
    """
    cron, window = parse_cron(expression), parse_window(begin, end)
    if not isinstance(cron, Cron):
        return False
    moments = (timedelta(hours=hour, minutes=minute) - offset for hour, minute in cron.times())
    return any(window.contains(moment) for moment in moments)


# --- hibernation


def hibernation_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: whether the cluster may hibernate now."""
    if is_to_hibernate(write.old_spec) or not is_to_hibernate(write.spec):
        return
    path, last = "spec.hibernation.enabled", last_operation(write.old)
    is_created = last.get("type") == CREATE and last.get("state") != SUCCEEDED
    remedy = "; hibernate the Shoot once it has been created" if is_created else ""
    possible = constraint(write.old, HIBERNATION_POSSIBLE)
    if possible is not None and possible.get("status") != "True":
        message = (
            f"'{HIBERNATION_POSSIBLE}' constraint is '{text(possible.get('status'))}': {text(possible.get('message'))}"
        )
        yield Denial(f"{message}{remedy}", path)
    for what in (ENCRYPTION_KEY, SERVICE_ACCOUNT_KEY):
        phase = phase_of(write.old, what)
        if phase in {*PREPARES, COMPLETING}:
            yield forbidden(path, f"must not be hibernated while the rotation of {what} is in phase {phase}")
    if encrypted_resources(write.old_spec) != set(texts(status(write.old).get("encryptedResources"))):
        message = "must not be hibernated while a change of the encrypted resources is rolled out"
        yield forbidden(path, f"{message}{remedy}")


def hibernation_stays(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: a Shoot that moves to another Seed stays awake, or hibernated."""
    if is_to_hibernate(write.old_spec) != is_to_hibernate(write.spec) and _moves(write.old):
        yield forbidden("spec.hibernation.enabled", "must not change while the Shoot moves to another Seed")


def _moves(shoot: Object) -> bool:
    last = last_operation(shoot)
    is_there = last.get("type") != RESTORE or last.get("state") == SUCCEEDED
    return last.get("type") == MIGRATE or not is_there or len(seeds_of(shoot)) > 1


def availability_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: a hibernated cluster cannot become highly available."""
    path = ("controlPlane", "highAvailability")
    sleeps = is_to_hibernate(write.spec) or status(write.old).get("hibernated") is True
    if sleeps and at(write.spec, *path) is not None and at(write.old_spec, *path) is None:
        yield forbidden("spec.controlPlane.highAvailability.failureTolerance.type", "cannot be set while hibernated")
