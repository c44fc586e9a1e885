"""Kinds that may not be there when the agent starts, and come later with somebody else's CustomResourceDefinitions."""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from kube.errors import Forbidden, KindNotServed, KubeError
from kube.resources import Resource
from kube.runtime.discovery import Discovery

_AGAIN_SECONDS = 1.0
_LOOKS = (1.0, 2.0, 4.0, 8.0)
"""Seconds of waiting before each look after news about CRDs, or where a kind is defined and not served: it may take a
moment until all of them are served.
"""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class LateKinds:
    """Calls `begin` once, as soon as all of some kinds of one group are served."""

    def __init__(self, discovery: Discovery, kinds: Sequence[Resource], *, begin: Callable[[], None]) -> None:
        self._discovery = discovery
        self._kinds = kinds
        self._begin = begin
        self._looking: asyncio.Task[None] | None = None
        self.have_come = False

    async def look(self) -> None:
        """Begin, if they are served now; returns when the API server has said whether they are."""
        if not self.have_come and await self._are_served() and not self.have_come:
            self.have_come = True
            self._begin()

    def kinds_changed(self, group: str) -> None:
        """CustomResourceDefinitions of the group came, changed or went."""
        if group == self._kinds[0].group and not self.have_come:
            if self._looking is not None:
                self._looking.cancel()
            self._looking = asyncio.create_task(self._look_soon())

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look_soon(self) -> None:
        for seconds in _LOOKS:
            await asyncio.sleep(seconds)
            await self.look()
            if self.have_come:
                return

    async def _is_gone(self, error: KindNotServed) -> bool:
        """Whether no news of it are to be expected: an API server that starts lists few groups."""
        try:
            await self._discovery.demand_gone(error.api_version, error.kind)
        except Forbidden:
            return True  # then news are all there is
        except KubeError:
            return False
        return True

    async def _are_served(self) -> bool:
        while True:
            try:
                for kind in self._kinds:
                    await self._discovery.find(kind.api_version, kind.kind)
            except KindNotServed as error:
                if self._looking is None and not await self._is_gone(error):
                    self._looking = asyncio.create_task(self._look_soon())
                return False
            except Forbidden:
                return False
            except KubeError as error:
                # To take them for missing would be to forget what hangs on them.
                log.info("Asking again whether kinds are served", group=self._kinds[0].group, error=str(error))
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return True
