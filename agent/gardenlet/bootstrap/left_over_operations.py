"""Unfinished operations of a predecessor on Shoots: they are marked as aborted, and so resumed.

Each is marked only while unchanged: an operation of this process must not be mistaken for a left-over one.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from agent.gardenlet.bootstrap.pace import Pace
from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import last_operation, responsible_seed
from kube.errors import KubeError, NotFound
from kube.objects import Object, key, metadata
from kube.runtime.client import Client, Selection

PROCESSING, ABORTED = "Processing", "Aborted"
_AT_ONCE = 20
_PAUSES = (0.5, 1.0, 2.0, 4.0)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def is_left_over(shoot: Object, *, seed: str) -> bool:
    return responsible_seed(shoot) == seed and last_operation(shoot).get("state") == PROCESSING


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOverOperations:
    garden: Client
    seed_name: str
    pace: Pace = field(default_factory=Pace)

    async def abort(self) -> None:
        """Mark the operations; call it before any operation starts.

        Failures after several attempts are logged and ignored: an unfinished operation is resumed anyway.
        """
        left = await self.pace.patiently("list the Shoots of the Seed", self._found)
        for pause in _PAUSES:
            left = await self._round(left)
            if not left:
                return
            await self.pace.sleep(pause)
        if left := await self._round(left):
            log.error(
                "Cannot mark unfinished operations of a previous gardenlet as aborted", shoots=list(map(key, left))
            )

    async def _found(self) -> list[Object]:
        selection = Selection(label_selector=f"{keys.SEED_LABEL_PREFIX}{self.seed_name}=true")
        pages = self.garden.pages(SHOOTS, selection)
        return [each async for page in pages for each in page if is_left_over(each, seed=self.seed_name)]

    async def _round(self, found: Sequence[Object]) -> list[Object]:
        """Return the Shoots that could not be marked."""
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(shoot: Object) -> bool:
            async with turns:
                return await self._aborted(shoot)

        done = await asyncio.gather(*map(one, found))
        return [shoot for shoot, is_done in zip(found, done, strict=True) if not is_done]

    async def _aborted(self, shoot: Object) -> bool:
        where = key(shoot)
        try:
            present = await self.garden.get(SHOOTS, where)
            if last_operation(present) != last_operation(shoot):
                return True  # already resumed
            version = metadata(present)["resourceVersion"]
            body = {"metadata": {"resourceVersion": version}, "status": {"lastOperation": {"state": ABORTED}}}
            await self.garden.patch(SHOOTS, where, body, subresource="status")
        except NotFound:
            return True
        except KubeError as error:
            log.warning("Cannot mark an operation as aborted", shoot=where, error=str(error))
            return False
        log.info("Marked an unfinished operation of a previous gardenlet as aborted", shoot=where)
        return True
