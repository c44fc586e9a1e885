"""Predicates for the handlers of a control loop: changes of objects that lead to a pass, and their combinations.

    enqueue(when=any_of(listed, changed("spec", "metadata.labels", is_ready)))
    enqueue_mapped(keys, when=all_of(exists, changed(annotation(keys.OPERATION))))

A store reports new objects (`old` is None), deleted ones (`new` is None) and updated ones; from a list or a resync it
reports objects as `initial`, in a resync with an `old` that is the `new`.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kube.objects import Object, annotations
from kube.paths import at
from kube.runtime.cache import Change

T = TypeVar("T")

Predicate = Callable[[Change[T]], bool]
Part = str | Callable[[T], object]
"""Part of the projection of a view: the path of a field, as "spec.seedName", or a function that computes it."""
Parts = Sequence[Part[Object]]


def exists(change: Change[Any]) -> bool:
    """Skip deletions, and objects of which the view keeps nothing."""
    return change.new is not None


def listed(change: Change[Any]) -> bool:
    """Existing objects at the start, after a watch started over, and in a resync."""
    return change.initial and change.new is not None


def happened(change: Change[Any]) -> bool:
    """Skip objects from a list or a resync."""
    return not change.initial


def came(change: Change[Any]) -> bool:
    return change.old is None and change.new is not None


def went(change: Change[Any]) -> bool:
    return change.new is None


def updated(change: Change[Any]) -> bool:
    """Skip new and deleted objects."""
    return change.old is not None and change.new is not None


def changed(*parts: Part[T]) -> Predicate[T]:
    """New and deleted objects, and those with a change in one of these parts; without parts, in any field kept."""
    readers = [_reader(part) for part in parts] or [_whole]

    def is_changed(change: Change[T]) -> bool:
        old, new = change.old, change.new
        if old is new:
            return False
        if old is None or new is None:
            return True
        return any(read(old) != read(new) for read in readers)

    return is_changed


def now(test: Callable[[T], object]) -> Predicate[T]:
    """Existing objects that pass a test now, regardless of their former state."""
    return lambda change: change.new is not None and bool(test(change.new))


def any_of(*predicates: Predicate[T]) -> Predicate[T]:
    return lambda change: any(holds(change) for holds in predicates)


def all_of(*predicates: Predicate[T]) -> Predicate[T]:
    return lambda change: all(holds(change) for holds in predicates)


def annotation(name: str) -> Callable[[Object], object]:
    """Part of an object: this annotation."""
    return lambda obj: annotations(obj).get(name)


def _reader(part: Part[T]) -> Callable[[T], object]:
    if not isinstance(part, str):
        return part
    path = part.split(".")

    def read(obj: Any) -> object:
        return at(obj, *path)

    return read


def _whole(kept: object) -> object:
    return kept


changed_or_listed: Predicate[Any] = any_of(listed, changed())
