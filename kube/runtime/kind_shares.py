"""Limits for a kind that does not answer in a namespace, so that it blocks neither all requests nor all workers.

A conversion webhook, an admission webhook or an aggregated API that accepts connections and never responds lets each
request for its kinds wait for 30 seconds and more. Webhooks select namespaces, so each kind has a share in each
namespace. Of requests that have waited for long, only few of a share, and of all together, continue. The others end,
and so do new ones of this share, until it answers in time again, which the few that continue find out. Other namespaces
are not affected: while a share gets no answers, passes that wait for it give their workers to others, see
`handing_over`.

A busy API server, or one whose etcd elects a leader, lets all requests wait. That is no reason to end any. So a request
is late only if nothing of its kind was answered for as long, or it has waited for very long, and if the API server
answers meanwhile: requests for another kind, or a probe. And if all answers of a kind are slow, requests become late
later: no single namespace hangs then.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType

from kube.errors import ApiError, KindBusy
from kube.resources import BUILT_IN_GROUPS, Resource
from kube.runtime.handing_over import waits_for_answer

MOST_OF_A_KIND = 2
"""Limit of requests of a share that have waited for longer than is usual."""
MOST_OF_ALL = 3
"""Limit of such requests of all kinds together; fewer than there are workers."""
LONGEST_PATIENCE = 10.0
WAITS_AFTER, WAITS_AFTER_IF_SLOW = 0.2, 1.0
"""Seconds without an answer after which a pass gives its worker to namespaces that have none."""
PATIENCE_WITH_MANY = 2.0
"""Patience for more requests of a share than may continue for long: they hold workers that others need."""
MOST_REMEMBERED = 1000
"""Limit of shares without requests that are known not to answer, and of kinds whose last answers are known."""
_ASKED_SECONDS = 1.0
"""Lifetime of the result of a probe: a slow API server has enough to do."""
_NEVER = float("-inf")


def patience(resource: Resource) -> float:
    """Seconds for which requests may wait in any number; kinds of Kubernetes need other servers for admission only."""
    return LONGEST_PATIENCE if resource.group in BUILT_IN_GROUPS else 2.0


def is_late(*, waited: float, unanswered_for: float, patience: float) -> bool:
    """Whether a request is late, while the API server answers others.

    Args:
        waited: seconds since it was sent.
        unanswered_for: seconds since anything of its kind was answered, or it was sent.
        patience: for the kind.
    """
    return unanswered_for >= patience or waited >= LONGEST_PATIENCE


@dataclass(slots=True)
class Answers:
    """Last answers of a kind, in all namespaces."""

    at: float = _NEVER
    prompt_at: float = _NEVER

    def are_slow(self, *, now: float) -> bool:
        """Whether there were answers lately, but none in time."""
        return self.at > now - PATIENCE_WITH_MANY >= self.prompt_at


@dataclass(slots=True)
class _Kind:
    running: int = 0
    slow: int = 0
    is_limited: bool = False
    answered_at: float = _NEVER
    prompt_at: float = _NEVER
    """Time of the last answer in time."""


class KindShares:
    """Requests for single objects over one client.

    Args:
        is_answering: probes the API server with a small request; whether it answered soon.
        patience: of a kind, in seconds.
    """

    def __init__(
        self, is_answering: Callable[[], Awaitable[bool]], *, patience: Callable[[Resource], float] = patience
    ) -> None:
        self._is_answering = is_answering
        self._patience = patience
        self._kinds: dict[tuple[str, str, str], _Kind] = {}
        """Shares by group, plural and namespace."""
        self._answers: dict[tuple[str, str], Answers] = {}
        self._slow = 0
        self._asking = asyncio.Lock()
        self._requested = (_NEVER, False)
        """Time of the last probe, and its result."""

    def demand(self, resource: Resource, namespace: str) -> None:
        """Return if a request for this kind may be sent in this namespace now; raise KindBusy if not."""
        kind = self._kinds.get((resource.group, resource.plural, namespace))
        if kind is not None and kind.is_limited and kind.running >= MOST_OF_A_KIND:
            raise self.busy(resource, namespace)

    def hold(self, resource: Resource, namespace: str) -> AbstractAsyncContextManager[None]:
        """Enclose the wait for an answer. Entering and leaving raise KindBusy, also if the request has to give way."""
        return _Request(self, resource, namespace, self._patience(resource))

    def start(self, resource: Resource, namespace: str) -> _Kind:
        """Count one more request for the kind."""
        self.demand(resource, namespace)
        kind = self._kinds.setdefault((resource.group, resource.plural, namespace), _Kind())
        kind.running += 1
        return kind

    def end(self, resource: Resource, namespace: str, kind: _Kind) -> None:
        kind.running -= 1
        if kind.running:
            return
        if not kind.is_limited:
            self._kinds.pop((resource.group, resource.plural, namespace), None)
        elif len(self._kinds) > MOST_REMEMBERED:
            idle = next(name for name, known in self._kinds.items() if not known.running)
            del self._kinds[idle]

    def answers(self, resource: Resource) -> Answers:
        name = (resource.group, resource.plural)
        if name not in self._answers and len(self._answers) >= MOST_REMEMBERED:
            self._answers.clear()
        return self._answers.setdefault(name, Answers())

    async def answers_others(self, than: _Kind, *, since: float) -> bool:
        """Whether the API server has answered something else in time since then, or does so now."""
        if any(kind.prompt_at > since for kind in self._kinds.values() if kind is not than):
            return True
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if self._requested[0] < min(since, now - _ASKED_SECONDS):
                self._requested = now, await self._is_answering()
            return self._requested[1]

    def take(self, kind: _Kind) -> bool:
        """Whether one more of the kind may continue for long; if so, count it."""
        kind.is_limited = True
        if kind.slow >= MOST_OF_A_KIND or self._slow >= MOST_OF_ALL:
            return False
        kind.slow += 1
        self._slow += 1
        return True

    def give_back(self, kind: _Kind) -> None:
        kind.slow -= 1
        self._slow -= 1

    def busy(self, resource: Resource, namespace: str) -> KindBusy:
        seconds = min(self._patience(resource), PATIENCE_WITH_MANY)
        return KindBusy(resource.group, resource.kind, namespace=namespace, seconds=seconds)


class _Request:
    """Context that is entered for each request: 4 us, compared to 8 with generators."""

    __slots__ = (
        *("_began", "_goes_on", "_is_prompt", "_kind", "_late", "_namespace", "_patience", "_resource", "_scope"),
        *("_shares", "_timer", "_watching"),
    )

    def __init__(self, shares: KindShares, resource: Resource, namespace: str, patience: float) -> None:
        self._shares = shares
        self._resource = resource
        self._namespace = namespace
        self._patience = patience
        self._late = False
        self._is_prompt = True
        self._goes_on = False
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._kind = self._shares.start(self._resource, self._namespace)
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        self._timer = loop.call_later(min(self._patience / 2, WAITS_AFTER), self._start_watching)
        self._scope = asyncio.timeout(None)
        await self._scope.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
        try:
            await self._scope.__aexit__(kind, error, trace)
        except TimeoutError:
            raise self._shares.busy(self._resource, self._namespace) from None
        finally:
            if self._goes_on:
                self._shares.give_back(self._kind)
            if error is None or isinstance(error, ApiError):
                self._answered()
            self._shares.end(self._resource, self._namespace, self._kind)

    def _answered(self) -> None:
        kind, answers = self._kind, self._shares.answers(self._resource)
        kind.answered_at = answers.at = asyncio.get_running_loop().time()
        if self._is_prompt:
            kind.prompt_at = answers.prompt_at = kind.answered_at
        kind.is_limited = kind.is_limited and self._late

    def _start_watching(self) -> None:
        """Watch a request that has waited for long: its scope ends when it is late and may not continue."""
        self._watching = asyncio.create_task(self._watch(self._scope, began=self._began))

    async def _watch(self, scope: asyncio.Timeout, *, began: float) -> None:
        self._is_prompt = False
        await self._until_late(began, lambda: min(self._patience / 2, WAITS_AFTER), if_slow=WAITS_AFTER_IF_SLOW)
        with waits_for_answer():
            await self._until_late(began, self._present_patience, if_slow=LONGEST_PATIENCE)
            self._late = True
            self._goes_on = self._shares.take(self._kind)
            if not self._goes_on:
                scope.reschedule(asyncio.get_running_loop().time())
            await asyncio.get_running_loop().create_future()  # cancelled at the end of the request

    def _present_patience(self) -> float:
        # Objects without a namespace belong to no single tenant, and are few: all may wait.
        has_many = self._namespace and self._kind.running > MOST_OF_A_KIND
        return min(self._patience, PATIENCE_WITH_MANY) if has_many else self._patience

    async def _until_late(self, began: float, patience: Callable[[], float], *, if_slow: float) -> None:
        loop = asyncio.get_running_loop()
        pause = min(patience(), PATIENCE_WITH_MANY) / 8
        while True:
            now = loop.time()
            if await self._shares.answers_others(self._kind, since=now - patience()):
                # The answers right now may be for this kind, too.
                await asyncio.sleep(pause)
                now = loop.time()
                unanswered_for = now - max(self._kind.answered_at, began)
                needed = if_slow if self._shares.answers(self._resource).are_slow(now=now) else patience()
                if is_late(waited=now - began, unanswered_for=unanswered_for, patience=needed):
                    return
            await asyncio.sleep(pause)
