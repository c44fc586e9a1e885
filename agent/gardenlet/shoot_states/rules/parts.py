"""How the state of a Shoot is divided into objects that a database takes: pure.

Whoever saves it may end between two of them. So that all that was saved is in them at any time, an entry stays in its
part, or moves to a later one, and later ones are written first. Of an entry that is in two parts, the later one counts.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from gardener.garden.shoot_states import MOST_PARTS
from kube.objects import Object, mappings, text

LONGEST = 1 << 20
"""Bytes of one part, as JSON: a database takes objects of little more."""
_FIELDS = ("gardener", "extensions", "resources")

Identity = tuple[str, ...]


class TooLarge(Exception):
    """The state is not saved; the text has the sizes of its kinds."""


def entries(state: Object) -> Iterator[tuple[Identity, Object]]:
    """Args: state: the `spec` of a ShootState."""
    for field in _FIELDS:
        for each in mappings(state.get(field)):
            yield (field, *(text(each.get(name)) for name in ("type", "kind", "name", "purpose"))), each


def of_entries(found: Iterable[tuple[Identity, Object]]) -> Object:
    """The `spec` of a ShootState; of two entries of one identity it has the later one."""
    kept = dict(found)
    return {field: [entry for identity, entry in kept.items() if identity[0] == field] for field in _FIELDS}


def together(parts: Iterable[Object]) -> Object:
    """The whole. Args: parts: `spec`s of ShootStates, in their order."""
    return of_entries(each for part in parts for each in entries(part))


def divided(state: Object, before: Sequence[Object]) -> list[Object]:
    """Its parts; there is one at least.

    Args:
        state: a whole `spec`.
        before: its parts as they were saved last.

    Raises: TooLarge.
    """
    places = {identity: number for number, part in enumerate(before) for identity, _ in entries(part)}
    found = dict[Identity, int]()
    left = [LONGEST] * MOST_PARTS
    # What has a place gets it before others fill it.
    for identity, entry in sorted(entries(state), key=lambda each: each[0] not in places):
        size = _size(entry)
        fitting = (number for number in range(places.get(identity, 0), MOST_PARTS) if size <= left[number])
        if (number := next(fitting, None)) is None:
            raise TooLarge(_too_large(state))
        found[identity] = number
        left[number] -= size
    numbers = range(max(found.values(), default=0) + 1)
    return [of_entries(each for each in entries(state) if found[each[0]] == number) for number in numbers]


def _size(entry: Object) -> int:
    return len(json.dumps(entry, ensure_ascii=False).encode())


def _too_large(state: Object) -> str:
    sizes, counts, largest = Counter[str](), Counter[str](), Counter[str]()
    for _, each in entries(state):
        kind, size = text(each.get("kind")) or text(each.get("type")), _size(each)
        sizes[kind] += size
        counts[kind] += 1
        largest[f"{kind} {text(each.get('name'))}"] = size
    kinds = ", ".join(f"{kind} {size} bytes ({counts[kind]})" for kind, size in sizes.most_common())
    (name, size) = largest.most_common(1)[0]
    return (
        f"the state of the Shoot is not saved: it has {sizes.total()} bytes, and has to fit into {MOST_PARTS} objects"
        f" of {LONGEST} bytes, each entry into one; by kind: {kinds}; the largest entry is {name} with {size} bytes;"
        " have the extensions of these keep less in their status"
    )
