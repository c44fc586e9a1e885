"""List and watch as an explicit state machine, after kube-rs.

    Empty ──page──▶ Listing(token) ──last page──▶ Watching(resourceVersion)
      ▲                │ 410                         │ 410 (status or event)
      └────────────────┴─────────────────────────────┘

With `streams` the first list is left out: a watch begins with all existing objects. That saves a call, for kinds whose
first users are waiting for them. It is tried once; after any failure, such as an API server that does not support it,
the list follows, and handles the error.

The end of a stream, a reset and silence keep the state: the watch continues from the last observed resourceVersion,
bookmarks included, so nothing is lost; an event that is not newer than that is a repetition and is dropped, so nothing
is applied twice. 410 leads to a new list, and so does an event that can't be understood, since it would come again. A
kind that is gone (see `kind_definitions`) reads as an empty list, once, and is requested again with back-off until
`wake` signals that its CRD was created. One that is only not served is a failure: its objects are stored, so their
known state stays.

**Silence is no failure**: objects of some kinds rarely change, and not all API servers send bookmarks. It is a reason
to check whether the past is the same, and then for later changes.

**The past may be another one afterwards.** When etcd is restored from a backup, versions go back, and an API server
waits in silence until they exceed the one from which it has to watch. So whenever the cluster was unreachable, or
silent, the next request lists the metadata of one object: the one that changed last. It must be in its observed state,
now or (a second list) at the version up to which everything was observed. A rewound history is only assumed if an
existing object contradicts its known state: its version is not the observed one, and not newer than all observed ones.
If the first object leaves that open, since it is gone or the API server has forgotten its state, the versions of all
are compared. If that leaves it open, too, the consequence is only a new list: of this kind, or of all kinds if the
version of the list went back (`kube.runtime.cache`).

Failures end in a jittered exponential back-off that any progress resets. They are logged when they begin and when
they end, not every time.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum

import structlog

from kube.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Gone,
    KindNotServed,
    KubeError,
    NotUnderstood,
    ServerFailure,
    TimedOut,
    TooManyRequests,
    Unreachable,
    from_status,
)
from kube.objects import Key, Object, annotations, key, resource_version
from kube.resources import Resource
from kube.runtime.client import INITIAL_EVENTS_END, Client, Form, Selection
from kube.runtime.kind_definitions import require_gone
from kube.runtime.paging import Paging

_FAILURES_ONCE_BACK = 4
_FAILURES_BEFORE_LIST = 4
_OUT_OF_REACH = (Unreachable, ServerFailure, TooManyRequests)


@dataclass(frozen=True, slots=True)
class Timings:
    """Times in seconds."""

    server_timeout: float = 300.0
    """Requested end of a watch by the API server; up to twice as long, at random."""
    idle_timeout: float = 150.0
    """Silence after which a stream is checked; many API servers send a bookmark about once a minute."""
    list_timeout: float = 60.0
    """Limit for one page of a list."""
    stream_timeout: float = 5.0
    """Silence after which a stream of existing objects is given up before its end."""
    first_back_off: float = 0.2
    longest_back_off: float = 30.0
    away_back_off: float = 5.0
    """Longest back-off while no API server answers: requests cost nothing then, and must not prolong an outage."""

    def back_off(self, failures: int, error: KubeError | None) -> float:
        """Maximum delay after `failures` consecutive failures, the last of which is `error`."""
        most = self.away_back_off if isinstance(error, Unreachable) else self.longest_back_off
        return min(self.first_back_off * 2.0 ** min(failures, 16), self.longest_back_off, most)


@dataclass(frozen=True, slots=True)
class ListBegins:
    """Start of a list: the events until `ListEnds` are all objects that existed at this resourceVersion."""

    resource_version: int
    is_relist: bool = False
    """Whether all versions known before are void."""


@dataclass(frozen=True, slots=True)
class Present:
    """An object that exists: listed, added or changed."""

    object: Object


@dataclass(frozen=True, slots=True)
class Deleted:
    object: Object


@dataclass(frozen=True, slots=True)
class ListEnds:
    """End of a list. No resourceVersion: the kind is gone, there can be no objects of it."""

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


class _History(Enum):
    SAME = "same"
    REWOUND = "rewound"
    OLDER_LIST = "older list"
    """Versions went back, but no existing object contradicts its known state."""
    UNKNOWN = "unknown"
    """Nothing contradicts the known state, but the API server can't continue from there."""


class Watcher:
    """Follows the objects of a kind: `async for event in watcher.events()`, for ever.

    Args:
        on_unverified: called when the cluster was unreachable, so that its history may be rewound afterwards.
        on_history_rewound: called if it is.
        on_older_list: called if versions went back, and no object proves a rewound history.
        on_start_failure: called if the first attempt fails.
        on_refused: called if the objects may not be read; then it gives up until it is woken. None: it retries.
        known: the known version of an object, 0 if none.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        selection: Selection,
        *,
        form: Form = Form.WHOLE,
        page_size: int = 500,
        streams: bool = False,
        timings: Timings | None = None,
        on_unverified: Callable[["Watcher"], None] = lambda _: None,
        on_history_rewound: Callable[["Watcher"], None] = lambda _: None,
        on_older_list: Callable[["Watcher"], None] = lambda _: None,
        on_start_failure: Callable[["Watcher", KubeError], None] = lambda *_: None,
        on_refused: Callable[["Watcher", Forbidden], None] | None = None,
        known: Callable[[Key], int] = lambda _: 0,
        managed_fields: bool = False,
    ) -> None:
        self.resource = resource
        self._client = client
        self._selection = selection
        self._form = form
        self._page_size = page_size
        self._streams = streams
        self._timings = timings or Timings()
        self._on_unverified = on_unverified
        self._on_history_rewound = on_history_rewound
        self._on_older_list = on_older_list
        self._on_start_failure = on_start_failure
        self._on_refused = on_refused
        self._known = known
        self._managed_fields = managed_fields
        self._state: State = Empty()
        self._seen = 0
        """Everything that happened up to this resourceVersion was yielded; 0: nothing was."""
        self._last: tuple[Key, int | None] | None = None
        """The yielded object that changed last, and its version; None: it was deleted."""
        self._unverified = False
        self._verifying = asyncio.Lock()
        self._is_relist = False
        self._failures = 0
        self._is_away = False
        self._expired = 0
        self._paging = Paging(resource)
        self._absent = False
        self._is_open = False
        """Whether a watch is open that continues from the observed state."""
        self.is_blind = False
        """Whether the data from the API server can't be understood."""
        self._woken = asyncio.Event()
        self.is_refused = False
        """Whether the objects may not be read, and the watcher has given up until it is woken."""
        self.tried = asyncio.Event()
        """Set when a first list is complete or has failed."""
        self._log = structlog.get_logger("watch").bind(resource=str(resource))

    @property
    def failing(self) -> bool:
        """Whether no events arrive, since the last attempt failed; that a kind is not served is an answer, too."""
        return self._failures > 0 and not (self._absent or self._is_open or self.is_refused)

    def wake(self) -> None:
        """End a back-off: there is reason to believe that the next attempt succeeds."""
        self._woken.set()

    def start_over(self) -> None:
        """Begin with a new list, and forget all observations."""
        self._state = Empty()
        self._seen, self._last, self._unverified, self._is_relist = 0, None, False, True

    def broke(self) -> None:
        """Begin with a new list after an unexpected failure."""
        self.start_over()
        self._failures, self.is_blind = max(self._failures, 1), True

    async def verify(self) -> None:
        """Ensure that yielded objects are still true, if that is unverified; else all are yielded again.

        Raises: KubeError: the API server gives no answer.
        """
        async with self._verifying:
            if self._unverified:
                await self._look_back()

    async def _ask(self) -> None:
        """Verify after a silence, even if verified before."""
        async with self._verifying:
            await self._look_back()
            self._progressed()

    async def _look_back(self) -> None:
        seen = self._seen
        history = await self._history(seen)
        if self._seen != seen:
            return  # it was started over meanwhile
        self._unverified = False
        if history is _History.REWOUND:
            self._log.warning("The history of the cluster was rewound; listing again")
            self.start_over()
            self._on_history_rewound(self)
        elif history is _History.OLDER_LIST:
            self._log.warning("The resource version of a list went back; listing again")
            self.start_over()
            self._on_older_list(self)
        elif history is _History.UNKNOWN:
            self._state = Empty()

    async def _history(self, seen: int) -> _History:
        """Compare the last changed object: versions alone show nothing once new ones have overtaken the old ones."""
        name, version = self._last or (None, None)
        went_back = False
        try:
            now = await self._compared(self._selection if name is None else self._only(name))
            went_back = resource_version(now) < seen
            found = None if name is None else _version_in(now, name)
            if found is not None and found != version and found <= seen:
                return _History.REWOUND
            if resource_version(now) >= max(seen, 1):
                if name is None or found == version:
                    return _History.SAME
                # It has changed since, or its known state never existed.
                then = await self._compared(self._only(name), at=str(seen))
                if resource_version(then) == seen:
                    was = _version_in(then, name)
                    if was == version:
                        return _History.SAME
                    if was is not None:
                        return _History.REWOUND
        except (BadRequest, Gone) as error:
            # Its API server does not support the field selector, or has forgotten the past.
            self._log.debug("Cannot determine from the last change whether the history is the same", error=str(error))
        if await self._is_contradicted(seen):
            return _History.REWOUND
        return _History.OLDER_LIST if went_back else _History.UNKNOWN

    async def _is_contradicted(self, seen: int) -> bool:
        """Whether an existing object has another version than the known one, already at the version observed last.

        Unknown objects prove nothing: perhaps they could not be read.
        """
        token, paging = "", Paging(self.resource)
        while True:
            page = await self._compared(self._selection, limit=self._page_size, token=token)
            # Own writes after the list are known, too.
            newest = max(seen, resource_version(page))
            for item in page["items"]:
                version, known = resource_version(item), self._known(key(item))
                if 0 < known <= newest and known != version <= max(seen, known):
                    return True
            token = paging.following(page)
            if not token:
                return False

    async def _compared(self, selection: Selection, *, at: str = "", limit: int = 1, token: str = "") -> Object:
        return await self._client.list_page(
            self.resource,
            selection,
            form=Form.METADATA,
            limit=limit,
            continue_token=token,
            at=at,
            timeout=self._timings.list_timeout,
        )

    def _only(self, name: Key) -> Selection:
        """Selection of that object alone, if it is selected."""
        fields = [f"metadata.name={name.name}", self._selection.field_selector]
        return Selection(name.namespace, self._selection.label_selector, ",".join(filter(None, fields)))

    async def events(self) -> AsyncGenerator[Event, None]:
        while True:
            try:
                async for event in self._step():
                    yield event
            except Gone:
                self._state = Empty()
                # The first new list is requested at once; if a watch from there is Gone too, something is wrong.
                if self._expired:
                    await self._back_off(self._expired)
                self._expired += 1
            except KindNotServed as error:
                if not self._absent and (reason := await self._may_have_objects()):
                    await self._failed(reason)
                    continue
                self._state = Empty()
                self._seen, self._last, self._unverified = 0, None, False
                if not self._absent:
                    self._absent = True
                    yield ListBegins(0)
                    yield ListEnds(None)
                await self._failed(error)
            except KubeError as error:
                self._absent = False
                is_away = isinstance(error, _OUT_OF_REACH) and not isinstance(error, NotUnderstood)
                if self._seen and is_away and not self._unverified:
                    self._unverified = True
                    self._on_unverified(self)
                is_stuck = isinstance(error, ApiError) and self._failures >= _FAILURES_BEFORE_LIST
                if is_stuck or isinstance(error, NotUnderstood):
                    # It would come again; or perhaps the API server can't continue from this resourceVersion.
                    self._state = Empty()
                self.is_blind = isinstance(error, NotUnderstood)
                await self._failed(error)

    async def _may_have_objects(self) -> KubeError | None:
        """Reason why a kind that is not served may have objects; None if there are none.

        A watcher that has observed nothing yet, and may not read the definitions of the kind, ignores that: most of
        these kinds are ones that a cluster need not have.
        """
        try:
            await require_gone(self._client, self.resource.api_version, self.resource.kind)
        except Forbidden as error:
            return error if self._seen else None
        except KubeError as error:
            return error
        return None

    async def _step(self) -> AsyncIterator[Event]:
        """One page or one stream, from the present state."""
        await self.verify()
        if isinstance(self._state, Watching):
            async for event in self._watch(self._state.resource_version):
                yield event
            return
        if self._streams:
            self._streams = False
            async for event in self._stream():
                yield event
            return
        if self._absent:
            await self._client.demand_served(self.resource)
        token = self._state.continue_token if isinstance(self._state, Listing) else ""
        if isinstance(self._state, Empty):
            self._paging = Paging(self.resource)
        try:
            page = await self._client.list_page(
                self.resource,
                self._selection,
                form=self._form,
                limit=self._page_size,
                continue_token=token,
                managed_fields=self._managed_fields,
                timeout=self._timings.list_timeout,
                paging=self._paging,
            )
        except NotUnderstood:
            self._state = Empty()
            raise
        self._progressed()
        if isinstance(self._state, Empty):
            yield ListBegins(resource_version(page), is_relist=self._is_relist)
            self._is_relist, self._last = False, None
        for item in page["items"]:
            self._note_last(item)
            yield Present(item)
        try:
            following = self._paging.following(page)
        except NotUnderstood:
            self._state = Empty()
            raise
        if following:
            self._state = Listing(following)
        else:
            self._state = Watching(resource_version(page))
            self._seen = resource_version(page)
            yield ListEnds(resource_version(page))
            # Set when the next event is requested: the end of the list has been applied by then.
            self.tried.set()

    async def _stream(self) -> AsyncIterator[Event]:
        try:
            async with self._opened("") as stream:
                yield ListBegins(0)
                while not isinstance(self._state, Watching):
                    async with asyncio.timeout(self._timings.stream_timeout):
                        event = await anext(stream)
                    if (present := self._accept_initial(event)) is not None:
                        yield present
                self.tried.set()
                async for event in stream:
                    if (known := self._accept(event)) is not None:
                        yield known
        except KindNotServed:
            raise
        except (KubeError, TimeoutError, StopAsyncIteration) as error:
            if isinstance(error, KubeError) and isinstance(self._state, Watching):
                if not isinstance(error, TimedOut):
                    raise
                await self._ask()
                return
            self._log.debug("The watch did not stream the existing objects; listing them", error=str(error))

    def _accept_initial(self, event: Object) -> Event | None:
        kind, obj = event.get("type"), event["object"]
        if kind == "ERROR":
            raise from_status(int(obj.get("code") or 500), obj)
        version = resource_version(obj)
        if kind == "BOOKMARK":
            if annotations(obj).get(INITIAL_EVENTS_END) != "true":
                return None
            self._state, self._seen = Watching(version), version
            self._progressed()
            return ListEnds(version)
        if kind == "DELETED":
            self._last = key(obj), None
            return Deleted(obj)
        self._note_last(obj)
        return Present(obj)

    def _note_last(self, obj: Object) -> None:
        """Remember the object if it has changed last of all."""
        version = resource_version(obj)
        if self._last is None or version > (self._last[1] or 0):
            self._last = key(obj), version

    def _opened(self, since: str) -> AbstractAsyncContextManager[AsyncIterator[Object]]:
        seconds = int(self._timings.server_timeout * random.uniform(1, 2))  # noqa: S311 - spreads load
        return self._client.watch(
            self.resource,
            self._selection,
            resource_version=since,
            timeout_seconds=max(seconds, 1),
            idle_timeout=self._timings.idle_timeout,
            form=self._form,
            managed_fields=self._managed_fields,
        )

    async def _watch(self, since: int) -> AsyncIterator[Event]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with self._opened(str(since)) as stream:
                self._is_open = True
                async for event in stream:
                    if (known := self._accept(event)) is not None:
                        yield known
        except TimedOut:
            if not self._is_open:
                raise
            await self._ask()
            return
        finally:
            self._is_open = False
        if self._state == Watching(since) and loop.time() - began < 1:
            raise Unreachable("the watch ended immediately after its start")

    def _accept(self, event: Object) -> Event | None:
        kind, obj = event.get("type"), event["object"]
        if kind == "ERROR":
            raise from_status(int(obj.get("code") or 500), obj)
        version = resource_version(obj)
        if not isinstance(self._state, Watching) or version <= self._state.resource_version:
            return None
        self._state = Watching(version)
        self._seen = version
        self._expired = 0
        self._progressed()
        if kind == "BOOKMARK":
            return None
        self._last = key(obj), None if kind == "DELETED" else version
        return Deleted(obj) if kind == "DELETED" else Present(obj)

    def _progressed(self) -> None:
        if self._failures:
            self._log.info("Watching again")
        self._failures = 0
        self._absent = False
        self.is_blind = False

    async def _failed(self, error: KubeError) -> None:
        self.tried.set()
        if isinstance(error, Forbidden) and self._on_refused is not None:
            self._on_refused(self, error)
            await self._give_up()
            return
        if self._failures == 0:
            if not self._seen:
                self._on_start_failure(self, error)
            self._log.info("Listing or watching failed, trying again with back-off", error=str(error))
        if isinstance(error, ApiError) and self._is_away:
            # A server after a long outage answers with errors while it starts, and soon recovers.
            self._failures = min(self._failures, _FAILURES_ONCE_BACK)
        self._is_away = isinstance(error, Unreachable)
        was_woken = await self._back_off(self._failures, error)
        # A watch that is woken a moment too early must not fall back into a long wait.
        self._failures = 1 if was_woken else self._failures + 1

    async def _give_up(self) -> None:
        """Wait until the watcher is woken: with the same credentials, the answer would be the same."""
        self.is_refused = True
        await self._woken.wait()
        self._woken.clear()
        self.is_refused, self._failures = False, 1

    async def _back_off(self, failures: int, error: KubeError | None = None) -> bool:
        """Wait; return whether the wait was ended by `wake`."""
        longest = self._timings.back_off(failures, error)
        try:
            async with asyncio.timeout(longest * random.uniform(0.5, 1)):  # noqa: S311 - jitter
                await self._woken.wait()
        except TimeoutError:
            pass
        was_woken = self._woken.is_set()
        # Cleared only now: a `wake` during an attempt is based on newer information than the attempt.
        self._woken.clear()
        return was_woken


def _version_in(page: Object, name: Key) -> int | None:
    return next((resource_version(item) for item in page["items"] if key(item) == name), None)
