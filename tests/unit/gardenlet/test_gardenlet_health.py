"""What `/healthz` of a gardenlet reports."""

import pytest

from agent.gardenlet.common.health import HealthState
from process.probes import CheckFailed


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.asyncio
async def test_a_renewal_that_fails_is_reported_at_once_and_one_that_never_comes_after_a_while() -> None:
    clock = Clock()
    health = HealthState(20.0, now=clock)
    clock.seconds = 1000.0
    await health.check.run()  # nothing is renewed yet
    health.confirm()
    clock.seconds += 20.0
    await health.check.run()
    clock.seconds += 0.5
    with pytest.raises(CheckFailed, match="not been renewed for 20 seconds"):
        await health.check.run()
    health.confirm()
    await health.check.run()
    health.fail("the garden is away")
    with pytest.raises(CheckFailed, match="the garden is away"):
        await health.check.run()
    health.confirm()
    await health.check.run()
