"""List and watch as an explicit state machine, after kube-rs.

    Empty ──page──▶ Listing(token) ──last page──▶ Watching(resourceVersion)
      ▲                │ 410                         │ 410 (status or event)
      └────────────────┴─────────────────────────────┘

The end of a stream, a reset and silence keep the state: the watch goes on from the last resourceVersion that was
seen, bookmarks included, so nothing is lost; an event that is not newer than that is a repetition and is
dropped, so nothing is applied twice. Only 410 leads to a new list. A kind that is not served (404) reads as an
empty list, once, and is asked for again with back-off until `wake` says that its CRD came.

Failures end in a jittered exponential back-off that any progress resets. They are logged when they begin and when
they end, not every time.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

import structlog

from kube.client import Client, Form, Selection
from kube.errors import ApiError, Gone, KubeError, NotFound, Unreachable, from_status
from kube.objects import Object, metadata, resource_version
from kube.resources import Resource

_FAILURES_BEFORE_LIST = 4


@dataclass(frozen=True, slots=True)
class Timings:
    """In seconds."""

    server_timeout: float = 300.0
    """After which the API server is asked to end a watch; up to twice as long, by chance."""
    idle_timeout: float = 150.0
    """A stream that is silent for so long is dead: the API server sends a bookmark about once a minute."""
    list_timeout: float = 60.0
    """For one page of a list."""
    first_back_off: float = 0.2
    longest_back_off: float = 30.0


@dataclass(frozen=True, slots=True)
class ListBegins:
    """What comes until `ListEnds` is all there was at this resourceVersion."""

    resource_version: int


@dataclass(frozen=True, slots=True)
class Present:
    """An object that exists: listed, added or changed."""

    object: Object


@dataclass(frozen=True, slots=True)
class Deleted:
    object: Object


@dataclass(frozen=True, slots=True)
class ListEnds:
    """None as the resourceVersion: the kind is not served, there can be no objects of it."""

    resource_version: int | None


Event = ListBegins | Present | Deleted | ListEnds


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing is known: a list has to come."""


@dataclass(frozen=True, slots=True)
class Listing:
    continue_token: str


@dataclass(frozen=True, slots=True)
class Watching:
    resource_version: int


State = Empty | Listing | Watching


class Watcher:
    """Follows the objects of a kind: `async for event in watcher.events()`, for ever."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        selection: Selection,
        *,
        form: Form = Form.WHOLE,
        page_size: int = 500,
        timings: Timings | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._selection = selection
        self._form = form
        self._page_size = page_size
        self._timings = timings or Timings()
        self._state: State = Empty()
        self._failures = 0
        self._expired = 0
        self._absent = False
        self._woken = asyncio.Event()
        self.tried = asyncio.Event()
        """Set when a first list is complete or has failed."""
        self._log = structlog.get_logger("watch").bind(resource=str(resource))

    @property
    def failing(self) -> bool:
        """Whether the last attempt failed; that a kind is not served is an answer, too."""
        return self._failures > 0 and not self._absent

    def wake(self) -> None:
        """End a back-off: there is reason to believe that the next attempt succeeds."""
        self._woken.set()

    def start_over(self) -> None:
        """Begin with a new list."""
        self._state = Empty()

    async def events(self) -> AsyncGenerator[Event, None]:
        while True:
            try:
                async for event in self._step():
                    yield event
            except Gone:
                self._state = Empty()
                # The first new list goes out at once; if a watch from there is Gone too, something is wrong.
                if self._expired:
                    await self._back_off(self._expired)
                self._expired += 1
            except NotFound as error:
                self._state = Empty()
                if not self._absent:
                    self._absent = True
                    yield ListBegins(0)
                    yield ListEnds(None)
                await self._failed(error)
            except KubeError as error:
                if isinstance(error, ApiError) and self._failures >= _FAILURES_BEFORE_LIST:
                    # Perhaps the API server can't go on from this resourceVersion, and says so in another way.
                    self._state = Empty()
                await self._failed(error)

    async def _step(self) -> AsyncIterator[Event]:
        """One page or one stream, from the present state."""
        if isinstance(self._state, Watching):
            async for event in self._watch(self._state.resource_version):
                yield event
            return
        token = self._state.continue_token if isinstance(self._state, Listing) else ""
        page = await self._client.list_page(
            self._resource,
            self._selection,
            form=self._form,
            limit=self._page_size,
            continue_token=token,
            timeout=self._timings.list_timeout,
        )
        self._progressed()
        if isinstance(self._state, Empty):
            yield ListBegins(resource_version(page))
        for item in page["items"]:
            yield Present(item)
        following = metadata(page).get("continue")
        if following:
            self._state = Listing(following)
        else:
            self._state = Watching(resource_version(page))
            yield ListEnds(resource_version(page))
            # Set when the generator is asked for more: the end of the list has been taken in by then.
            self.tried.set()

    async def _watch(self, since: int) -> AsyncIterator[Event]:
        seconds = int(self._timings.server_timeout * random.uniform(1, 2))  # noqa: S311 - spreads load
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with self._client.watch(
            self._resource,
            self._selection,
            resource_version=str(since),
            timeout_seconds=max(seconds, 1),
            idle_timeout=self._timings.idle_timeout,
            form=self._form,
        ) as stream:
            async for event in stream:
                if (known := self._accept(event)) is not None:
                    yield known
        if self._state == Watching(since) and loop.time() - began < 1:
            raise Unreachable("the watch ended as soon as it had begun")

    def _accept(self, event: Object) -> Event | None:
        kind, obj = event.get("type"), event["object"]
        if kind == "ERROR":
            raise from_status(int(obj.get("code") or 500), obj)
        version = resource_version(obj)
        if not isinstance(self._state, Watching) or version <= self._state.resource_version:
            return None
        self._state = Watching(version)
        self._expired = 0
        self._progressed()
        if kind == "BOOKMARK":
            return None
        return Deleted(obj) if kind == "DELETED" else Present(obj)

    def _progressed(self) -> None:
        if self._failures:
            self._log.info("Watching again")
        self._failures = 0
        self._absent = False

    async def _failed(self, error: KubeError) -> None:
        self.tried.set()
        if self._failures == 0:
            self._log.info("Listing or watching failed, trying again with back-off", error=str(error))
        was_woken = await self._back_off(self._failures)
        # Who is woken a moment too early must not fall back into a long wait.
        self._failures = 1 if was_woken else self._failures + 1

    async def _back_off(self, failures: int) -> bool:
        """Whether the wait was ended by `wake`."""
        longest = min(self._timings.first_back_off * 2 ** min(failures, 16), self._timings.longest_back_off)
        try:
            async with asyncio.timeout(longest * random.uniform(0.5, 1)):  # noqa: S311 - jitter
                await self._woken.wait()
        except TimeoutError:
            pass
        was_woken = self._woken.is_set()
        # Not before: who wakes during an attempt knows more than the attempt did.
        self._woken.clear()
        return was_woken
