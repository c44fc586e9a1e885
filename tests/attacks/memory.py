"""The largest object of each kind that some program watches: how much of it is kept in memory.

    python -m tests.attacks.memory [TEXT]    # only views in whose name this text is

An object of 1.4 MB is what etcd takes. For each view, the way to be large is tried that takes most memory of all in
`kit.hostile`: as objects of Python, and as it is kept. What is too large is not kept at all; then the largest counts that
is. Sizes are KiB.
"""

import sys
from collections.abc import Iterator
from typing import Any

import orjson

from kit.hostile import STORED, Place, inflated, retained
from kit.views import SAMPLE, read_by, views
from kube.objects import Object
from kube.runtime.cache import Store, View
from kube.runtime.watch import ListBegins, Present

_SMALL = (15_000, 30_000, 60_000)
"""Bytes with which the worst way is found, and what is just below a limit."""
_WAYS = 3
"""Are tried with the largest objects."""
_SHOWN = 20 << 10
"""Bytes; views that never keep more are not shown."""


def attacked(view: View[Any]) -> tuple[str, int, int]:
    """What is large, and bytes of it as objects, and as they are kept."""
    places = {place for place in read_by(view) if place and isinstance(_at(place), list | dict)}
    places |= {("metadata", "labels"), ("metadata", "finalizers")}
    found = sorted(
        ((as_objects(view, obj), kept(view, obj), what) for size in _SMALL for what, obj in _of(places, size)),
        reverse=True,
    )
    worst = list(dict.fromkeys(what for *_, what in found))[:_WAYS]
    large = [(as_objects(view, obj), kept(view, obj), what) for what, obj in _of(places, STORED) if what in worst]
    objects, _, what = max(large)
    return what, objects, max(size for _, size, _ in (*found, *large))


def _of(places: set[Place], size: int) -> Iterator[tuple[str, Object]]:
    return inflated(SAMPLE, places, size=size)


def _at(place: Place) -> Any:
    value: Any = SAMPLE
    for step in place:
        value = value[step]
    return value


def as_objects(view: View[Any], obj: Object) -> int:
    return retained(view.project(orjson.loads(orjson.dumps(obj))))


def kept(view: View[Any], obj: Object) -> int:
    store = Store(view)
    source = store.source("")
    source.apply(ListBegins(0))
    source.apply(Present(orjson.loads(orjson.dumps(obj))))
    return sum(map(retained, (store._objects, store._indexes)))


def main(arguments: list[str]) -> int:
    wanted = arguments[0] if arguments else ""
    print("| View | Kind | Large is | As objects | Kept |\n|---|---|---|---|---|")
    for name, view in views():
        if wanted in name:
            what, objects, most = attacked(view)
            if max(objects, most) > _SHOWN:
                print(f"| {name} | {view.resource.kind} | {what} | {objects >> 10} | {most >> 10} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
