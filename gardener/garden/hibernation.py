"""Hibernation and wake-up times of a Shoot: `spec.hibernation.schedules`.

Each schedule has up to two cron expressions, `start` for hibernation and `end` for waking up, in the time zone of its
`location`, or else in UTC. Times that were missed while no program ran are made up for within a deadline; of several
missed times only the last one counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from gardener.conditions import HIBERNATION_POSSIBLE, constraint
from gardener.garden.cron import Cron, Every, parse_cron
from gardener.garden.shoots import has_failed
from kube.clock import parse_time
from kube.objects import Object, mappings, metadata, text
from kube.paths import at

_NO_VERSION = "v0.0.0-"
_LONGEST_DEADLINE = timedelta(days=7)
_FIELDS = (("start", True), ("end", False))


@dataclass(frozen=True, slots=True)
class Activation:
    """Hibernation or wake-up at one moment."""

    moment: datetime
    """UTC."""
    hibernates: bool
    """Whether the Shoot hibernates; otherwise it wakes up."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A cron expression of a schedule."""

    cron: Cron | Every
    zone: tzinfo
    hibernates: bool

    def last(self, after: datetime, until: datetime) -> Activation | None:
        return self._at(self.cron.last(after, until.astimezone(self.zone)))

    def next(self, after: datetime) -> Activation | None:
        return self._at(self.cron.next(after.astimezone(self.zone)))

    def _at(self, moment: datetime | None) -> Activation | None:
        return None if moment is None else Activation(moment.astimezone(UTC), self.hibernates)


def gives_up(shoot: Object, *, version: str) -> bool:
    """Whether the last request has failed for good, with this version of Gardener: the Shoot is left alone.

    Another version may succeed. A build without a version counts as the same version.
    """
    by = text(at(shoot, "status", "gardener", "version"))
    return has_failed(shoot) and (by == version or by.startswith(_NO_VERSION))


def schedules(shoot: Object) -> list[Object]:
    return mappings(at(shoot, "spec", "hibernation", "schedules"))


def is_possible(shoot: Object) -> bool:
    """Whether the constraints known so far permit hibernation and wake-up."""
    found = constraint(shoot, HIBERNATION_POSSIBLE) or {}
    return text(found.get("status")) in {"", "True"}


def entries(shoot: Object) -> Sequence[Entry]:
    """Schedules in the order of the list, hibernation before wake-up.

    Raises:
        ValueError: names the invalid field.
    """
    return tuple(_entries(schedules(shoot)))


def _entries(listed: Sequence[Object]) -> Iterator[Entry]:
    for index, schedule in enumerate(listed):
        path = f"spec.hibernation.schedules[{index}]"
        zone = _zone(f"{path}.location", text(schedule.get("location")))
        for field, hibernates in _FIELDS:
            if expression := text(schedule.get(field)):
                try:
                    yield Entry(parse_cron(expression), zone, hibernates)
                except ValueError as error:
                    raise ValueError(f"{path}.{field}: not a valid cron expression: {error}") from None


def _zone(path: str, location: str) -> tzinfo:
    if location in {"", "UTC"}:
        return UTC
    try:
        return ZoneInfo(location)
    except (OSError, ValueError, KeyError):
        raise ValueError(
            f"{path}: time zone {location!r} is unknown on this host; correct it, or install tzdata"
        ) from None


def earliest(shoot: Object, *, now: datetime, deadline: timedelta) -> datetime:
    """The moment until which schedules are done, or too old to be made up for."""
    done = text(at(shoot, "status", "lastHibernationTriggerTime")) or text(metadata(shoot).get("creationTimestamp"))
    try:
        since = parse_time(done)
    except ValueError:
        since = now
    return max(since, now - min(deadline, _LONGEST_DEADLINE))


def due(scheduled: Sequence[Entry], *, after: datetime, now: datetime) -> Activation | None:
    """The latest activation due now; of several at the same time the first in the order of the entries."""
    found = [activation for each in scheduled if (activation := each.last(after, now))]
    return max(found, key=lambda activation: activation.moment, default=None)


def upcoming(scheduled: Sequence[Entry], *, now: datetime) -> Activation | None:
    found = [activation for each in scheduled if (activation := each.next(now))]
    return min(found, key=lambda activation: activation.moment, default=None)
