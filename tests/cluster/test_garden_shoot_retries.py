"""Operations that met a rate limit are requested again, later and later."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.controller_manager.shoot.retry import MOST_RETRIES, declare
from config.controller_manager.controllers import Controllers, ShootRetry
from gardener.api.garden import SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import looked_at, run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.clock import format_time
from kube.objects import Object

pytestmark = pytest.mark.timeout(600)


def fail(place: ShootPlace, at: datetime, *, code: str = "ERR_INFRA_RATE_LIMITS_EXCEEDED") -> int:
    """The generation that has failed."""
    generation: int = place.meta(SHOOTS, "s")["generation"]
    operation = {"description": "d", "lastUpdateTime": format_time(at), "progress": 50, "type": "Reconcile"}
    status: Object = {"lastOperation": {**operation, "state": "Failed"}, "observedGeneration": generation}
    status["lastErrors"] = [{"description": "slow down", "codes": [code]}]
    place.patch(SHOOTS, "s", {"status": status}, status=True)
    return generation


async def test_what_met_a_rate_limit_is_retried_until_that_is_hopeless(garden: Garden) -> None:
    place = ShootPlace(garden)
    place.shoot()
    now = datetime.now(UTC)
    long_ago = now - timedelta(hours=7)
    controllers = Controllers(shoot_retry=ShootRetry(retry_period=3600.0, retry_jitter_period=0.001))
    async with (
        connected(garden.cluster) as client,
        run_garden_controller(declare, client, place.namespace, controllers=controllers, clock=lambda: now) as loop,
    ):

        async def retried(generation: int) -> None:
            await soon(lambda: place.meta(SHOOTS, "s")["generation"] > generation, "the operation to be retried")

        async def is_looked_at() -> None:
            await looked_at(loop, SHOOTS, place.get(SHOOTS, "s"))

        fail(place, now - timedelta(minutes=59))
        await is_looked_at()
        for _ in range(MOST_RETRIES):
            await retried(fail(place, long_ago))
        last = fail(place, long_ago)
        await is_looked_at()
        assert place.meta(SHOOTS, "s")["generation"] == last
        fail(place, long_ago, code="ERR_INFRA_UNAUTHENTICATED")
        await is_looked_at()
        assert place.meta(SHOOTS, "s")["generation"] == last
        await retried(fail(place, long_ago + timedelta(minutes=1)))
