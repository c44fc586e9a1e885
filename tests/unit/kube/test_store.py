"""What a store forgets: each object that goes, whatever was kept of it."""

from collections.abc import Sequence

import pytest

from kube.cache import Change, Store, View
from kube.objects import Key, Object, labels
from kube.resources import SECRETS
from kube.watch import Deleted, Event, ListBegins, ListEnds, Present


def _mark(obj: Object) -> str | None:
    return labels(obj).get("mark")


def _marks(mark: str | None) -> tuple[str, ...]:
    return () if mark is None else (mark,)


def secret(version: int, mark: str | None) -> Object:
    marked = {} if mark is None else {"labels": {"mark": mark}}
    return {"metadata": {"name": "s", "namespace": "ns", "resourceVersion": str(version), **marked}}


@pytest.mark.parametrize("last", ["x", None])
@pytest.mark.parametrize("first", ["x", None])
@pytest.mark.parametrize(
    "end", [[Deleted(secret(4, None))], [ListBegins(5), ListEnds(5)]], ids=["told by the watch", "not in the next list"]
)
def test_nothing_is_left_of_an_object_that_goes(first: str | None, last: str | None, end: Sequence[Event]) -> None:
    store = Store(View(SECRETS, _mark, indexes=(("mark", _marks),)))
    source = store.source("")
    changes: list[Change[str | None]] = []
    store.subscribe(changes.append)
    for event in (ListBegins(1), Present(secret(1, first)), ListEnds(1), Present(secret(2, last)), *end):
        source.apply(event)
    assert len(store) == 0
    assert store._versions == {}
    assert store.by_index("mark", "x") == []
    assert [(change.key, change.old, change.new) for change in changes] == [
        (Key("ns", "s"), None, first),
        (Key("ns", "s"), first, last),
        (Key("ns", "s"), last, None),
    ]
