"""The time of an API server, for what is compared with times that API servers and other programs wrote.

A machine whose clock is wrong by hours would else delete what is young, take tokens for valid that have expired, and
all Seeds for lost. Every answer of an API server has a `Date`; while it agrees with the own clock, the own clock, which
is finer, is the time. Otherwise the difference is added, and it is logged once that the clocks differ.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import structlog

from kube.clock import utc_now

TOLERANCE = timedelta(seconds=10)
"""An answer may have been on its way for some seconds, and a `Date` is a whole second."""


class ServerClock:
    """Called, it gives the present time in UTC.

    Args: own: the clock of this machine.
    """

    def __init__(self, own: Callable[[], datetime] = utc_now) -> None:
        self._own = own
        self._noted = ""
        self.skew = timedelta(0)
        """What is added to the own clock."""

    def __call__(self) -> datetime:
        return self._own() + self.skew

    def note(self, date: str) -> None:
        """Take in the header `Date` of an answer that has just come. One that can't be read changes nothing."""
        if date == self._noted:
            return  # all answers of one second
        self._noted = date
        try:
            skew = parsedate_to_datetime(date).astimezone(UTC) - self._own()
        except (ValueError, OverflowError):
            return
        if abs(skew - self.skew) < TOLERANCE:
            return
        log = structlog.get_logger("clock")
        if abs(skew) < TOLERANCE:
            self.skew = timedelta(0)
            log.info("The clock of this machine agrees with the API server's again")
        else:
            self.skew = skew
            log.warning(
                "The clock of this machine differs from the API server's, which counts; correct it",
                seconds_behind=round(skew.total_seconds()),
            )
