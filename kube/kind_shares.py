"""One kind that does not answer does not hold all requests, nor all workers that wait for them.

A conversion webhook, an admission webhook or an aggregated API that takes connections and says nothing lets each
request for its kinds wait for 30 seconds and more. Of those that have waited for long, only few of a kind, and of all
kinds together, go on. The others end, and so do new ones, until the kind answers in time again; the few that go on
find out.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from kube.errors import ApiError, KindBusy
from kube.resources import BUILT_IN_GROUPS, Resource

MOST_OF_A_KIND = 2
"""Requests that have waited for longer than is usual."""
MOST_OF_ALL = 3
"""The same of all kinds together; fewer than there are workers."""


def patience(resource: Resource) -> float:
    """Seconds for which requests may wait in any number; kinds of Kubernetes need other servers for admission only."""
    return 10.0 if resource.group in BUILT_IN_GROUPS else 2.0


@dataclass(slots=True)
class _Kind:
    running: int = 0
    slow: int = 0
    is_limited: bool = False


class KindShares:
    """The requests for single objects that go over one client."""

    def __init__(self, *, patience: Callable[[Resource], float] = patience) -> None:
        self._patience = patience
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._slow = 0

    def demand(self, resource: Resource) -> None:
        """Raises KindBusy: no more requests for this kind may be sent now."""
        kind = self._kinds.get((resource.group, resource.plural))
        if kind is not None and kind.is_limited and kind.running >= MOST_OF_A_KIND:
            raise self._error(resource)

    @contextlib.asynccontextmanager
    async def hold(self, resource: Resource) -> AsyncIterator[None]:
        """While a request waits for its answer. Raises KindBusy, also if it has to give way."""
        self.demand(resource)
        name = resource.group, resource.plural
        kind = self._kinds.setdefault(name, _Kind())
        request = _Request(self, kind)
        kind.running += 1
        try:
            async with asyncio.timeout(None) as scope:
                timer = asyncio.get_running_loop().call_later(self._patience(resource), request.is_late, scope)
                try:
                    yield
                finally:
                    timer.cancel()
            request.is_answered = True
        except ApiError:
            request.is_answered = True
            raise
        except TimeoutError:
            if scope.expired():
                raise self._error(resource) from None
            raise
        finally:
            kind.running -= 1
            request.end()
            if request.is_answered and not request.late:
                kind.is_limited = False
            if not kind.running and not kind.is_limited:
                self._kinds.pop(name, None)

    def take(self, kind: _Kind) -> bool:
        """Whether one more of the kind may go on for long."""
        kind.is_limited = True
        if kind.slow >= MOST_OF_A_KIND or self._slow >= MOST_OF_ALL:
            return False
        kind.slow += 1
        self._slow += 1
        return True

    def give_back(self, kind: _Kind) -> None:
        kind.slow -= 1
        self._slow -= 1

    def _error(self, resource: Resource) -> KindBusy:
        return KindBusy(resource.group, resource.kind, seconds=self._patience(resource))


class _Request:
    def __init__(self, shares: KindShares, kind: _Kind) -> None:
        self.late = False
        self.is_answered = False
        self._shares = shares
        self._kind = kind
        self._goes_on = False

    def is_late(self, scope: asyncio.Timeout) -> None:
        self.late = True
        self._goes_on = self._shares.take(self._kind)
        if not self._goes_on:
            scope.reschedule(asyncio.get_running_loop().time())

    def end(self) -> None:
        if self._goes_on:
            self._shares.give_back(self._kind)
