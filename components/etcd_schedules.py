"""Times of full backups and defragmentation of a Shoot's etcds: pure.

The times depend on the uid of the Shoot, so that the etcds of a seed work at different times, and each keeps its own.
Full backups are made before the maintenance window, so that there is one when something goes wrong in it.
"""

import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from gardener.garden.maintenance.schedule import time_window
from gardener.garden.windows import DAY, Window, parse_window
from kube.clock import time_or_none
from kube.objects import Object, metadata, text
from kube.paths import at

_BEFORE_WINDOW = timedelta(hours=1, minutes=15)
_MINUTE = timedelta(minutes=1)
_HOUR = 60
_DAILY, _EVERY_THIRD_DAY = "* * *", "*/3 * *"


@dataclass(frozen=True, slots=True)
class Schedules:
    """Cron expressions, UTC. Attributes: full: of full backups."""

    full: str
    defragmentation: str


def schedules(shoot: Object, *, is_seed: bool = False, live: Object | None = None) -> Schedules:
    """Schedules of a Shoot's etcds.

    Args:
        shoot: with a status that has a uid.
        is_seed: whether the Shoot is a seed, whose etcd changes a lot.
        live: the Etcd, if it exists; its schedules are kept.
    """
    computed = _computed(shoot, is_seed=is_seed)
    return Schedules(
        full=text(at(live or {}, "spec", "backup", "fullSnapshotSchedule")) or computed.full,
        defragmentation=text(at(live or {}, "spec", "etcd", "defragmentationSchedule")) or computed.defragmentation,
    )


def _computed(shoot: Object, *, is_seed: bool) -> Schedules:
    days = _DAILY if is_seed else _EVERY_THIRD_DAY
    window = _window(shoot)
    if window is None:
        created = time_or_none(metadata(shoot).get("creationTimestamp")) or datetime.min
        since_midnight = timedelta(hours=created.hour, minutes=created.minute)
        return Schedules(_cron(since_midnight, _DAILY), _cron(since_midnight, days))
    number = zlib.crc32(text(at(shoot, "status", "uid")).encode())
    full = window.begin - _BEFORE_WINDOW + number % _HOUR * _MINUTE
    defragmentation = window.begin + number % max(window.length // _MINUTE, 1) * _MINUTE
    return Schedules(_cron(full, _DAILY), _cron(defragmentation, days))


def _window(shoot: Object) -> Window | None:
    """Maintenance window; None if it is always open."""
    given = time_window(shoot)
    try:
        window = parse_window(text(given.get("begin")), text(given.get("end")))
    except ValueError:
        return None
    return window if window.length < DAY - _MINUTE else None


def _cron(since_midnight: timedelta, days: str) -> str:
    minutes = since_midnight % DAY // _MINUTE
    return f"{minutes % _HOUR} {minutes // _HOUR} {days}"
