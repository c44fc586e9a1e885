"""Time of an API server, for comparisons with times that API servers and other programs wrote.

A machine whose clock is wrong by hours would otherwise delete young objects, use expired tokens, and declare all Seeds
lost. The header `Date` of a response is the API server's time, if the API server itself has written the response: a
path that it delegates to an aggregated API server, a kubelet or a Pod has the time of that server.

The time advances with the boot clock, which cannot be set, so that a jump of this machine's clock has no effect.
It changes only when several consecutive responses agree on a difference, and never by more than `MOST`.

No single clock causes a deletion: `earliest` is the least of all known times.
"""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import structlog

from kube.clock import utc_now

TOLERANCE = timedelta(seconds=10)
"""A response takes up to some seconds, and a `Date` is a whole second."""
CONFIRMATIONS = 3
"""Consecutive responses that agree on a difference before it counts."""
MOST = timedelta(days=2)
"""Largest difference from the clock of this machine that is accepted."""
_OWN = re.compile(r"/(version|apis?|api/v1(/.*)?|apis/coordination\.k8s\.io/v1/.*)")
"""API servers restore the APIServices of these versions at once; other versions of a group may be aggregated."""
_PASSED_ON = frozenset({"attach", "exec", "log", "portforward", "proxy"})

log = structlog.get_logger("clock")


def is_own_path(path: str) -> bool:
    """Whether an API server always answers this path itself.

    All other groups may belong to an aggregated API server.
    """
    return _OWN.fullmatch(path) is not None and _PASSED_ON.isdisjoint(path.split("/"))


def _since_boot() -> float:
    """Seconds since boot, including those in which the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ServerClock:
    """Clock of an API server. A call returns the present time in UTC.

    Args:
        own: clock of this machine.
        elapsed: seconds since any fixed moment.
    """

    def __init__(self, own: Callable[[], datetime] = utc_now, *, elapsed: Callable[[], float] = _since_boot) -> None:
        self._own, self._elapsed = own, elapsed
        self._known = self._start = (own(), elapsed())
        self._reported: tuple[datetime, float] | None = None
        """Last `Date`, and the time of its arrival."""
        self._noted = ""
        self._difference = timedelta(0)
        self._confirmations = 0

    def __call__(self) -> datetime:
        return self._continued(*self._known)

    def earliest(self) -> datetime:
        """Return the least time of all clocks, for deletions that depend on time.

        The boot clock counts, too: if this machine and the API server have one clock, both jump together.
        """
        times = [self(), self._own(), self._continued(*self._start)]
        if self._reported is not None:
            times.append(self._continued(*self._reported))
        return min(times)

    def _continued(self, moment: datetime, at: float) -> datetime:
        return moment + timedelta(seconds=self._elapsed() - at)

    def note(self, path: str, date: str) -> None:
        """Take over the header `Date` of a response that has just come. An unreadable one changes nothing."""
        if (date == self._noted and not self._confirmations) or not is_own_path(path):
            return  # all responses of one second
        self._noted = date
        try:
            moment = parsedate_to_datetime(date).astimezone(UTC)
        except (ValueError, OverflowError):
            return
        self._reported = (moment, self._elapsed())
        difference = moment - self()
        if abs(difference) < TOLERANCE:
            self._confirmations = 0
            return
        agrees = self._confirmations and abs(difference - self._difference) < TOLERANCE
        self._confirmations = self._confirmations + 1 if agrees else 1
        self._difference = difference
        if self._confirmations == CONFIRMATIONS:
            self._set(moment)

    def _set(self, moment: datetime) -> None:
        own = self._own()
        behind = moment - own
        if abs(behind) > MOST:
            log.error(
                "The clocks of this machine and of the API server differ too much; deletions are delayed; correct the "
                "wrong clock",
                seconds_behind=round(behind.total_seconds()),
            )
            return
        self._confirmations = 0
        if abs(behind) < TOLERANCE:
            self._known = (own, self._elapsed())
            log.info("The clock of this machine matches that of the API server again")
            return
        self._known = (moment, self._elapsed())
        log.warning(
            "The clock of this machine differs from that of the API server, which is used; correct it",
            seconds_behind=round(behind.total_seconds()),
        )
