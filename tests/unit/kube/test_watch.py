"""What a watch does when it fails, and how it finds that the history of the cluster was rewound; against scripted answers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from kit.clock import settle
from kit.eventually import soon
from kube.errors import (
    BadRequest,
    Forbidden,
    Gone,
    Invalid,
    KindNotServed,
    KubeError,
    NotUnderstood,
    ServerFailure,
    TimedOut,
    Unreachable,
)
from kube.objects import Key, Object
from kube.resources import SECRETS, Resource
from kube.runtime.cache import Caches, Change, View, without_managed_fields
from kube.runtime.client import Client, Selection
from kube.runtime.watch import Deleted, Event, ListBegins, ListEnds, Present, Timings, Watcher

WIDGETS = Resource("example.com", "v1", "Widget", "widgets", namespaced=True)
AWAY, SILENT, EXPIRED = Unreachable("away"), TimedOut("silent"), Gone(410, message="expired")
BAD = BadRequest(400, message="no such field")
NO_PAUSE = Timings(first_back_off=0.0)
THE_END = object()
"""Of a stream, in the usual way."""


def page(version: int, *objects: Object) -> Object:
    return {"metadata": {"resourceVersion": str(version)}, "items": list(objects)}


def thing(version: int, name: str = "s") -> Object:
    return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version)}}


class Scripted:
    """A client for which each kind has its lists, and its watches: events, and then an error or silence."""

    def __init__(self, lists: dict[Resource, list[Any]], watches: dict[Resource, list[list[Any]]]) -> None:
        self.lists, self.watches = lists, watches
        self.definitions: list[Object] | KubeError = []
        self.requested: list[tuple[str, str]] = []
        self.answers = asyncio.Event()
        self.answers.set()

    async def read(self, _: str) -> Object:
        """The APIServices: there are none."""
        return {"kind": "APIServiceList", "items": []}

    async def pages(self, *_: Any, **__: Any) -> AsyncIterator[list[Object]]:
        """CustomResourceDefinitions."""
        if isinstance(self.definitions, KubeError):
            raise self.definitions
        yield self.definitions

    async def demand_served(self, resource: Resource) -> None:
        raise KindNotServed(resource.api_version, resource.kind)

    async def list_page(self, resource: Resource, selection: Selection, *, at: str = "", **_: Any) -> Object:
        self.requested.append((selection.field_selector, at))
        await self.answers.wait()
        if not self.lists[resource]:
            await asyncio.Event().wait()
        found = self.lists[resource].pop(0)
        if isinstance(found, KubeError):
            raise found
        return cast("Object", found)

    @contextlib.asynccontextmanager
    async def watch(self, resource: Resource, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[Object]]:
        yield self._events(self.watches[resource].pop(0) if self.watches[resource] else [])

    async def _events(self, script: list[Any]) -> AsyncIterator[Object]:
        for step in script:
            if isinstance(step, KubeError):
                raise step
            if step is THE_END:
                return
            yield step if "type" in step else {"type": "MODIFIED", "object": step}
        await asyncio.Event().wait()

    async def list(self, *_: Any) -> Any:  # last, so that the type is meant by its name before
        return self.definitions


class Unhurried(Watcher):
    """Notes its pauses, as the number of failures, and goes on at once."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pauses: list[int] = []

    async def _back_off(self, failures: int, error: KubeError | None = None) -> bool:
        self.pauses.append(failures)
        await asyncio.sleep(0)
        return False


class Followed:
    """A watch of Secrets and what it has yielded so far."""

    def __init__(self, lists: list[Any], watches: list[list[Any]], **options: Any) -> None:
        self.client = Scripted({SECRETS: lists}, {SECRETS: watches})
        self.yielded: list[Event] = []
        self.history_rewound, self.older_lists, self.unverified = 0, 0, 0
        self.watcher = Unhurried(
            cast("Client", self.client),
            SECRETS,
            Selection(),
            on_unverified=self._note_unverified,
            on_history_rewound=self._count,
            on_older_list=self._note_older_list,
            **options,
        )

    async def follow(self) -> None:
        async for event in self.watcher.events():
            self.yielded.append(event)

    def _count(self, _: Watcher) -> None:
        self.history_rewound += 1

    def _note_older_list(self, _: Watcher) -> None:
        self.older_lists += 1

    def _note_unverified(self, _: Watcher) -> None:
        self.unverified += 1


@contextlib.asynccontextmanager
async def following(lists: list[Any], watches: list[list[Any]], **options: Any) -> AsyncIterator[Followed]:
    followed = Followed(lists, watches, **options)
    task = asyncio.create_task(followed.follow())
    await settle()
    yield followed
    task.cancel()
    await asyncio.wait([task])


async def test_after_410_the_first_list_goes_out_at_once_and_others_after_a_pause() -> None:
    async with following([page(version) for version in (1, 2, 3)], [[EXPIRED], [EXPIRED]]) as followed:
        assert followed.yielded == [each for version in (1, 2, 3) for each in (ListBegins(version), ListEnds(version))]
        assert followed.watcher.pauses == [1]


NAME = "metadata.name=s"


ALL: Any = ("", "")
THEN = (NAME, "7")
SAME, REWOUND, OLDER_LIST, UNKNOWN = "same", "rewound", "older list", "unknown"


@pytest.mark.parametrize("end", [AWAY, SILENT], ids=["after an outage", "after a silence"])
@pytest.mark.parametrize(
    ("answers", "requested", "past"),
    [
        pytest.param([page(7, thing(5))], [(NAME, "")], SAME, id="nothing has changed"),
        pytest.param([page(6, thing(4))], [(NAME, "")], REWOUND, id="it is older"),
        pytest.param([page(9, thing(6))], [(NAME, "")], REWOUND, id="it is one that should have been seen"),
        pytest.param(
            [page(6, thing(5))] * 2, [(NAME, ""), ALL], OLDER_LIST, id="only the version of the list went back"
        ),
        pytest.param(
            [page(6, thing(5)), page(6, thing(5), thing(3, "b"))],
            [(NAME, ""), ALL],
            REWOUND,
            id="the version went back, and that of another object",
        ),
        pytest.param([page(9, thing(8)), page(7, thing(5))], [(NAME, ""), THEN], SAME, id="it has changed since"),
        pytest.param([page(9, thing(8)), page(7, thing(4))], [(NAME, ""), THEN], REWOUND, id="it never was as known"),
        pytest.param([page(9), EXPIRED, page(9, thing(4, "b"))], [(NAME, ""), THEN, ALL], UNKNOWN, id="forgotten"),
        pytest.param(
            [page(9), EXPIRED, page(9, thing(3, "b"))],
            [(NAME, ""), THEN, ALL],
            REWOUND,
            id="forgotten, another is older",
        ),
        pytest.param(
            [page(9), EXPIRED, page(9, thing(8, "b"))], [(NAME, ""), THEN, ALL], UNKNOWN, id="forgotten, all is newer"
        ),
        pytest.param([page(9), page(7, thing(5))], [(NAME, ""), THEN], SAME, id="it is gone since"),
        pytest.param([page(9), page(9), page(9)], [(NAME, ""), THEN, ALL], UNKNOWN, id="what was can't be listed"),
        pytest.param([BAD, page(9, thing(5))], [(NAME, ""), ALL], UNKNOWN, id="one can't be requested"),
    ],
)
async def test_the_past_is_another_one_if_an_object_that_exists_reports_so(
    answers: list[Any], requested: Any, past: str, end: KubeError
) -> None:
    """Known are `s` in version 5 and `b` in version 4, up to version 7."""
    lists = [page(7, thing(4, "b"), thing(5)), *answers, page(20, thing(20))]
    known = {"s": 5, "b": 4}
    async with following(lists, [[end]], known=lambda k: known[k.name]) as followed:
        first: list[Event] = [ListBegins(7), Present(thing(4, "b")), Present(thing(5)), ListEnds(7)]
        relisted: list[Event] = [
            ListBegins(20, is_relist=past in {REWOUND, OLDER_LIST}),
            Present(thing(20)),
            ListEnds(20),
        ]
        assert followed.yielded == first + (relisted if past is not SAME else [])
        assert followed.client.requested[1 : len(requested) + 1] == requested
        assert (followed.history_rewound, followed.older_lists, followed.unverified) == (
            past is REWOUND,
            past is OLDER_LIST,
            end is AWAY,
        )
        assert followed.watcher.pauses == [0] * (end is AWAY)
        assert not followed.watcher.failing


async def test_own_writes_while_it_is_queried_are_no_rewound_history() -> None:
    lists = [page(7, thing(5)), page(9), EXPIRED, page(9, thing(8)), page(20)]
    async with following(lists, [[SILENT]], known=lambda _: 12) as followed:
        assert followed.yielded[-1] == ListEnds(20)
        assert followed.history_rewound == 0


async def test_a_silence_in_which_the_api_server_is_away_is_a_failure() -> None:
    async with following([page(7, thing(5)), AWAY, page(7, thing(5))], [[SILENT]]) as followed:
        assert (followed.watcher.pauses, followed.unverified) == ([0], 1)


async def test_what_is_no_event_is_not_waited_for_again() -> None:
    """It would come again; so all is listed, and the cluster is in no doubt for that."""
    garbled = NotUnderstood("no JSON")
    lists = [page(7, thing(5)), garbled, page(9, thing(8))]
    async with following(lists, [[garbled]]) as followed:
        assert followed.yielded[3:] == [ListBegins(9), Present(thing(8)), ListEnds(9)]
        assert (followed.watcher.pauses, followed.unverified, followed.watcher.is_blind) == ([0, 1], 0, False)
    async with following([page(7, thing(5)), garbled], [[garbled]]) as followed:
        assert followed.watcher.is_blind
        assert followed.watcher.failing


async def test_an_answer_that_comes_after_a_new_start_means_nothing() -> None:
    async with following([page(7)], []) as followed:
        followed.watcher._unverified = True
        followed.client.answers.clear()
        followed.client.lists[SECRETS] += [page(1), page(1, thing(1))]
        assuring = asyncio.create_task(followed.watcher.verify())
        await settle()
        followed.watcher.start_over()
        followed.client.answers.set()
        await assuring
        assert followed.history_rewound == 0


# --- the caches of a cluster


@pytest.mark.parametrize(("kind", "is_own"), [(SECRETS, True), (WIDGETS, False)])
async def test_what_another_api_server_counts_is_its_own_affair(kind: Resource, is_own: bool) -> None:
    """Versions go back after an outage; Widgets are stored by another API server."""
    client = Scripted({kind: [page(7, thing(5)), page(3, thing(2)), page(4, thing(2))]}, {kind: [[AWAY]]})
    heard = asyncio.Event()
    caches = Caches(cast("Client", client), timings=NO_PAUSE, on_history_rewound=heard.set)
    store = caches.acquire(View(kind, without_managed_fields))
    await soon(lambda: store.version(Key("ns", "s")) == 2)
    assert caches.history_rewound.is_set() is heard.is_set() is is_own
    await caches.close()


async def test_handlers_are_called_for_everything_again_after_the_resync_period() -> None:
    client = Scripted({SECRETS: [page(7, thing(5))]}, {SECRETS: []})
    caches = Caches(cast("Client", client), resync_period=0.0)
    again = asyncio.Event()

    def heard(change: Change[Object]) -> None:
        if change.initial and change.old is change.new is not None:
            again.set()

    caches.acquire(View(SECRETS, without_managed_fields)).subscribe(heard)
    await asyncio.wait_for(again.wait(), 60)
    await caches.close()


# --- back-off


@pytest.mark.parametrize(
    ("failures", "error", "seconds"),
    [
        (0, None, 0.2),
        (1, ServerFailure(500, message="x"), 0.4),
        (4, ServerFailure(500, message="x"), 3.2),
        (50, ServerFailure(500, message="x"), 30),
        (50, None, 30),
        (0, Unreachable("x"), 0.2),
        (4, Unreachable("x"), 3.2),
        # An API server that was away for minutes is found again in seconds.
        (5, Unreachable("x"), 5),
        (50, Unreachable("x"), 5),
    ],
)
def test_waits_grow_and_are_short_while_no_server_answers(
    failures: int, error: KubeError | None, seconds: float
) -> None:
    assert Timings().back_off(failures, error) == pytest.approx(seconds)


def test_a_shorter_bound_holds_for_all() -> None:
    assert Timings(longest_back_off=0.3).back_off(50, Unreachable("x")) == 0.3


# --- streams instead of lists


def bookmark(version: int, *, is_end: bool = True) -> Object:
    notes = {"k8s.io/initial-events-end": "true"} if is_end else {}
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), "annotations": notes}}}


def added(version: int, name: str = "s") -> Object:
    return {"type": "ADDED", "object": thing(version, name)}


def deleted(version: int, name: str = "s") -> Object:
    return {"type": "DELETED", "object": thing(version, name)}


async def test_all_that_there_is_comes_in_a_stream_and_then_what_changes() -> None:
    before = [added(5), bookmark(6, is_end=False), added(3, "b"), deleted(8, "b")]
    async with following([], [[*before, bookmark(9), thing(9), thing(10)]], streams=True) as followed:
        assert followed.yielded == [
            ListBegins(0),
            Present(thing(5)),
            Present(thing(3, "b")),
            Deleted(thing(8, "b")),
            ListEnds(9),
            Present(thing(10)),
        ]
        assert followed.client.requested == []
        assert followed.watcher.tried.is_set()


async def test_after_a_stream_the_watch_goes_on_where_it_was() -> None:
    async with following([], [[added(5), bookmark(9), THE_END], [thing(10)]], streams=True) as followed:
        assert followed.yielded == [ListBegins(0), Present(thing(5)), ListEnds(9), Present(thing(10))]


@pytest.mark.parametrize(
    ("stream", "yielded"),
    [
        pytest.param([Invalid(422, message="sendInitialEvents is forbidden")], [], id="the API server is too old"),
        pytest.param([EXPIRED], [], id="expired"),
        pytest.param([added(5), AWAY], [Present(thing(5))], id="cut off"),
        pytest.param([added(5), THE_END], [Present(thing(5))], id="without an end"),
        pytest.param([{"type": "ERROR", "object": {"code": 500}}], [], id="an error"),
        pytest.param([added(5), bookmark(6, is_end=False)], [Present(thing(5))], id="silent"),
    ],
)
async def test_what_does_not_come_in_a_stream_is_listed(stream: list[Any], yielded: list[Event]) -> None:
    timings = Timings(stream_timeout=0.01)
    listed: list[Event] = [ListBegins(7), Present(thing(7)), ListEnds(7)]
    async with following([page(7, thing(7))], [stream], streams=True, timings=timings) as followed:
        await soon(lambda: followed.yielded[-1:] == listed[-1:])
        assert followed.yielded == [ListBegins(0), *yielded, *listed]
        assert followed.watcher.pauses == []


async def test_a_store_that_was_streamed_is_as_if_listed() -> None:
    """Own writes that are seen first, and what goes meanwhile, count by their versions."""
    view = View(SECRETS, without_managed_fields, streams=True)
    client = Scripted({SECRETS: []}, {SECRETS: [[added(5, "a"), added(6, "b"), deleted(8, "b"), bookmark(9)]]})
    caches = Caches(cast("Client", client))
    store = caches.acquire(view)
    store.observe(thing(4, "gone"))
    store.observe(thing(12, "new"))
    await store.synced.wait()
    assert {k.name: store.version(k) for k, _ in store.items()} == {"a": 5, "new": 12}
    store.observe(thing(7, "b"))
    assert store.get(Key("ns", "b")) is None
    await caches.close()


DEFINITION: Object = {"metadata": {"name": "widgets.example.com"}, "spec": {"names": {"kind": "Widget"}}}
UNSERVED = KindNotServed("example.com/v1", "Widget")
MAY_NOT = Forbidden(403, message="no")


@pytest.mark.parametrize(
    ("definitions", "seen", "is_empty"),
    [
        pytest.param([], True, True, id="the kind is gone"),
        pytest.param([DEFINITION], True, False, id="it is switched off"),
        pytest.param(MAY_NOT, True, False, id="that may not be known"),
        pytest.param(AWAY, True, False, id="that is not known"),
        pytest.param([], False, True, id="there never was one"),
        pytest.param([DEFINITION], False, False, id="it was switched off before"),
        pytest.param(MAY_NOT, False, True, id="a cluster without it that may not be queried"),
    ],
)
async def test_what_is_known_of_a_kind_goes_only_with_the_kind(definitions: Any, seen: bool, is_empty: bool) -> None:
    client = Scripted({WIDGETS: [page(7, thing(5))] if seen else []}, {WIDGETS: [[UNSERVED]] * 20})
    client.definitions = definitions
    client.lists[WIDGETS] += [UNSERVED] * 20
    watcher = Unhurried(cast("Client", client), WIDGETS, Selection())
    yielded: list[Event] = []

    async def follow() -> None:
        async for event in watcher.events():
            yielded.append(event)  # noqa: PERF401 - it has no end

    task = asyncio.create_task(follow())
    await soon(lambda: len(watcher.pauses) > 3)
    task.cancel()
    await asyncio.wait([task])
    assert yielded[3 if seen else 0 :] == ([ListBegins(0), ListEnds(None)] if is_empty else [])


async def test_a_store_that_is_given_back_is_not_waited_for_when_all_is_listed_again() -> None:
    client = Scripted({SECRETS: [page(7), page(3)]}, {SECRETS: []})
    caches, view = Caches(cast("Client", client)), View(SECRETS, without_managed_fields)
    caches.acquire(view)
    (watcher,) = caches._running[view].watchers
    caches._older_list(watcher)
    assert caches.unverified
    await caches.release(view)
    assert not caches.unverified
