"""What a store forgets: each object that goes, whatever was kept of it."""

import asyncio
from collections.abc import AsyncGenerator, Hashable, Sequence
from typing import Any, cast

import pytest
import structlog

from kube.objects import Key, Object, labels
from kube.resources import SECRETS
from kube.runtime.cache import Change, Source, Store, View, _feed, without_managed_fields
from kube.runtime.codec import InPart
from kube.runtime.watch import Deleted, Event, ListBegins, ListEnds, Present


def feed(source: Source[Any], *events: Event) -> None:
    for event in events:
        source.apply(event)


def listed(version: int, *objects: Object) -> list[Event]:
    return [ListBegins(version), *map(Present, objects), ListEnds(version)]


def _mark(obj: Object) -> str | None:
    return labels(obj).get("mark")


def _marks(mark: str | None) -> tuple[str, ...]:
    """An object may refer to another one twice."""
    return () if mark is None else (mark, mark)


def secret(version: int, mark: str | None) -> Object:
    marked = {} if mark is None else {"labels": {"mark": mark}}
    return {"metadata": {"name": "s", "namespace": "ns", "resourceVersion": str(version), **marked}}


@pytest.mark.parametrize("last", ["x", None])
@pytest.mark.parametrize("first", ["x", None])
@pytest.mark.parametrize(
    "end", [[Deleted(secret(4, None))], listed(5)], ids=["reported by the watch", "not in the next list"]
)
def test_nothing_is_left_of_an_object_that_goes(first: str | None, last: str | None, end: Sequence[Event]) -> None:
    store = Store(View(SECRETS, _mark, indexes=(("mark", _marks),)))
    source = store.source("")
    changes: list[Change[str | None]] = []
    store.subscribe(changes.append)
    feed(source, *listed(1, secret(1, first)), Present(secret(2, last)), *end)
    assert len(store) == 0
    assert store._versions == {}
    assert store.keys_by_index("mark", "x") == []
    assert [(change.key, change.old, change.new) for change in changes] == [
        (Key("ns", "s"), None, first),
        (Key("ns", "s"), first, last),
        (Key("ns", "s"), last, None),
    ]


def _brittle(obj: Object) -> str | None:
    if labels(obj).get("mark") == "boom":
        raise AttributeError("'str' object has no attribute 'get'")
    return _mark(obj)


def _brittle_index(mark: str | None) -> Sequence[Hashable]:
    return cast("Sequence[Hashable]", ([],)) if mark == "unhashable" else ()


@pytest.mark.parametrize("odd", ["boom", "unhashable"])
def test_an_object_that_can_not_be_understood_affects_itself_only(odd: str) -> None:
    store = Store(View(SECRETS, _brittle, indexes=(("mark", _brittle_index),)))
    source = store.source("")

    def named(name: str, version: int, mark: str) -> Object:
        obj = secret(version, mark)
        obj["metadata"]["name"] = name
        return obj

    with structlog.testing.capture_logs() as logs:
        feed(source, *listed(3, named("odd", 1, odd), named("changed", 2, "x"), named("plain", 3, "x")))
        assert sorted(k.name for k, _ in store.items()) == ["changed", "plain"]
        assert store.synced.is_set()
        feed(source, Present(named("changed", 4, odd)), Present(named("plain", 5, "y")))
    # What is not understood is not gone either.
    assert {k.name: mark for k, mark in store.items()} == {"changed": "x", "plain": "y"}
    failed = [entry["object"] for entry in logs if entry["log_level"] == "error"]
    assert failed == ["Secret ns/odd", "Secret ns/changed"]
    assert {k.name: version for k, version in store.unread.items()} == {"odd": 1, "changed": 4}
    assert store.newest(Key("ns", "changed")) == 4
    feed(source, Present(named("odd", 6, "z")), Present(named("changed", 7, "z")))
    assert {k.name: mark for k, mark in store.items()} == {"odd": "z", "changed": "z", "plain": "y"}
    assert store.unread == {}


def test_an_object_that_nests_too_deeply_to_be_kept_is_known_in_part() -> None:
    store = Store(View(SECRETS, without_managed_fields))
    obj: Object = secret(3, "x") | {"spec": {"size": 1, "text": "x" * (20 << 10), "deep": {}}}
    inner = obj["spec"]["deep"]
    for _ in range(1015):
        inner["a"] = {}
        inner = inner["a"]
    with structlog.testing.capture_logs() as logs:
        feed(store.source(""), *listed(3, obj))
    assert [entry["object"] for entry in logs] == ["Secret ns/s"]
    (known,) = store.values()
    assert (known["spec"]["size"], store.unread) == (1, {Key("ns", "s"): 3})


@pytest.mark.parametrize(
    "end",
    [[Present(secret(9, "z"))], [Deleted(secret(9, None))], listed(9)],
    ids=["it can be read again", "it goes", "it is not in the next list"],
)
def test_an_object_that_is_read_in_part_is_named_and_remembered(end: Sequence[Event]) -> None:
    store = Store(View(SECRETS, _mark))
    source = store.source("")
    with structlog.testing.capture_logs() as logs:
        feed(source, *listed(3, InPart(secret(3, "x"))), Present(InPart(secret(4, "y"))))
    assert [(entry["log_level"], entry["object"]) for entry in logs] == [("warning", "Secret ns/s")]
    assert (list(store.values()), store.unread) == (["y"], {Key("ns", "s"): 4})
    feed(source, *end)
    assert store.unread == {}


def _secret(name: str, version: int, namespace: str = "ns") -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": str(version)}}


def test_a_resync_reports_all_objects_again() -> None:
    store = Store(View(SECRETS, without_managed_fields))
    feed(store.source(""), *listed(2, _secret("a", 1), _secret("b", 2)))
    changes: list[Change[Object]] = []
    unsubscribe = store.subscribe(changes.append)
    store.resync()
    unsubscribe()
    store.resync()
    reported = [(change.key.name, change.old is change.new, change.initial) for change in changes]
    assert reported == [("a", False, True), ("b", False, True), ("a", True, True), ("b", True, True)]


def test_a_handler_that_fails_keeps_no_other_from_being_called() -> None:
    store = Store(View(SECRETS, without_managed_fields))
    reported: list[Key] = []

    def fail(_: Change[Object]) -> None:
        raise KeyError("x")

    store.subscribe(fail)
    store.subscribe(lambda change: reported.append(change.key))
    with structlog.testing.capture_logs() as logs:
        feed(store.source(""), *listed(1, _secret("a", 1)))
    assert reported == [Key("ns", "a")]
    assert [entry["object"] for entry in logs] == ["Secret ns/a"]


def test_a_list_that_is_older_than_an_own_write_does_not_remove_its_object() -> None:
    store = Store(View(SECRETS, without_managed_fields))
    source = store.source("")
    source.apply(ListBegins(5))
    store.observe(_secret("written", 7))
    source.apply(ListEnds(5))
    assert store.get(Key("ns", "written")) == _secret("written", 7)
    feed(source, *listed(8))
    assert len(store) == 0


def test_a_list_of_one_namespace_states_nothing_of_others() -> None:
    store = Store(View(SECRETS, without_managed_fields))
    one, other = store.source("one"), store.source("other")
    for source, namespace in ((one, "one"), (other, "other")):
        assert not store.synced.is_set()
        feed(source, *listed(1, _secret("s", 1, namespace)))
    assert store.synced.is_set()
    feed(one, *listed(3))
    assert [k.namespace for k, _ in store.items()] == ["other"]
    store.observe(_secret("s", 2, "elsewhere"))
    assert [k.namespace for k, _ in store.items()] == ["other"]


async def test_a_watch_that_fails_in_its_own_code_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube.runtime.cache._RESTART_SECONDS", 0.0)
    listed = asyncio.Event()

    class Watcher:
        failed = started_over = False

        async def events(self) -> AsyncGenerator[Event, None]:
            yield ListBegins(1)
            if not self.failed:
                self.failed = True
                raise KeyError("x")
            yield ListEnds(1)
            listed.set()
            await asyncio.Event().wait()

        def broke(self) -> None:
            self.started_over = True

    watcher = Watcher()
    store = Store(View(SECRETS, without_managed_fields))
    feeding = asyncio.create_task(_feed(store.source(""), watcher))  # type: ignore[arg-type]
    with structlog.testing.capture_logs() as logs:
        await asyncio.wait_for(listed.wait(), 60)
    feeding.cancel()
    assert (watcher.started_over, store.synced.is_set()) == (True, True)
    assert [entry["event"] for entry in logs] == ["A watch failed unexpectedly, starting over"]
