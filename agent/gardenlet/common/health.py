"""Renewal of the Seed's Lease, reported by `/healthz` in addition to the response itself.

It is healthy until the first confirmation, which comes when the control loops start: a replica that is not the leader
renews nothing, nor does one that waits for credentials.

A failed renewal is reported at once, a missing one after a while. A missing Seed is no failure, so the state of the
garden alone never causes a restart.
"""

import time
from collections.abc import Callable

from process.probes import CheckFailed, HealthCheck


class HealthState:
    """Health of the renewals; healthy at the start.

    Args:
        patience: seconds after which an unconfirmed state is unhealthy.
        now: monotonic seconds.
    """

    def __init__(self, patience: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._patience, self._now = patience, now
        self._problem = ""
        self._confirmed: float | None = None
        self.check = HealthCheck("periodic-health", self._check)

    def confirm(self) -> None:
        self._problem, self._confirmed = "", self._now()

    def fail(self, problem: str) -> None:
        """Report a problem, a sentence for operators."""
        self._problem = problem

    async def _check(self) -> None:
        if self._problem:
            raise CheckFailed(self._problem)
        if self._confirmed is not None and (silence := self._now() - self._confirmed) > self._patience:
            raise CheckFailed(f"the Lease of the Seed has not been renewed for {silence:.0f} seconds")
