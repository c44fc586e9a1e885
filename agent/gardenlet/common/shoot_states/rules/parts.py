"""Division of a Shoot's state into objects that the database accepts: pure.

The process may end between two writes. So that all saved entries exist at any time, an entry stays in its part, or
moves to a later one, and later ones are written first. If an entry is in two parts, the later one is used.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from gardener.garden.shoot_states import MOST_PARTS
from kube.objects import Object, mappings, text

LONGEST = 1 << 20
"""Maximum size of one part as JSON, in bytes: databases accept little more."""
_FIELDS = ("gardener", "extensions", "resources")

Identity = tuple[str, ...]


class TooLarge(Exception):
    """The state is not saved; the text has the sizes of its kinds."""


def entries(state: Object) -> Iterator[tuple[Identity, Object]]:
    """Yield the entries of a ShootState's `spec` with their identities."""
    for field in _FIELDS:
        for each in mappings(state.get(field)):
            yield (field, *(text(each.get(name)) for name in ("type", "kind", "name", "purpose"))), each


def of_entries(found: Iterable[tuple[Identity, Object]]) -> Object:
    """Build the `spec` of a ShootState; of entries with the same identity, the last one is used."""
    kept = dict(found)
    return {field: [entry for identity, entry in kept.items() if identity[0] == field] for field in _FIELDS}


def together(parts: Iterable[Object]) -> Object:
    """Join the `spec`s of ShootStates, in their order."""
    return of_entries(each for part in parts for each in entries(part))


def divided(state: Object, before: Sequence[Object]) -> list[Object]:
    """Divide a state into at least one part.

    Args:
        state: a whole `spec`.
        before: the parts of the last save.

    Raises:
        TooLarge: it does not fit into the parts.
    """
    places = {identity: number for number, part in enumerate(before) for identity, _ in entries(part)}
    found = dict[Identity, int]()
    left = [LONGEST] * MOST_PARTS
    # Entries with a previous part are placed first, before others fill it.
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
        f"the state of the Shoot is not saved: it has {sizes.total()} bytes, but must fit into {MOST_PARTS} objects"
        f" of {LONGEST} bytes, each entry into one; by kind: {kinds}; the largest entry is {name} with {size} bytes; "
        "reduce the state in the status of these extension objects"
    )
