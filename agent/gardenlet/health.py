"""Whether the gardenlet can renew its Seed's Lease: what `/healthz` reports beside that the process answers.

It is good until the first confirmation, which comes when the control loops start: a replica that does not lead renews
nothing, nor does one that waits for credentials.

A renewal that fails is reported at once, one that never comes after a while. That there is no Seed is no failure, so a
restart never follows from the state of the garden alone.
"""

import time
from collections.abc import Callable

from process.probes import CheckFailed, HealthCheck


class HealthState:
    """Good at the start.

    Args:
        patience: seconds after which a state that is not confirmed is bad.
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
        """Args: problem: a sentence for operators."""
        self._problem = problem

    async def _check(self) -> None:
        if self._problem:
            raise CheckFailed(self._problem)
        if self._confirmed is not None and (silence := self._now() - self._confirmed) > self._patience:
            raise CheckFailed(f"the Lease of the Seed has not been renewed for {silence:.0f} seconds")
