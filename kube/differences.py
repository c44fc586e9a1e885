"""Whether an object has to be written.

Two questions. `needs_update` compares plainly: does the live object differ from the one to write? That is right when
the manifest may have changed, but server defaults make nearly every object differ from its manifest.

So when the manifest is unchanged since the last successful write, `is_drifted` determines the origin of each
difference: either our own write (the API server filled in defaults, rewrote `1000m` to `1`, dropped unknown fields) or
another writer. The API server records in `metadata.managedFields` the manager that last set each field:

- A field that differs, or that only the live object has, is drift if another manager owns it. If it is ours, or
  without an owner, then it resulted from our own write.
- A field that only the manifest has is drift: it was removed by another writer or dropped by the API server, and
  removals are not recorded. Values that the API server is known not to store (null, empty lists and mappings; for
  built-in kinds 0 and false as well) do not count, `stringData` of a Secret is compared with its `data`, and fields
  that were already missing in the response to our own write (`dropped_fields`) would be missing after another one, too.

In case of doubt, it is drift.
"""

import base64
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from kube.objects import Object, annotations, group_of, mapping, mappings, metadata
from kube.packing import digest
from kube.resources import BUILT_IN_GROUPS

_STATUS = "status"
_MISSING: Any = object()
_MOST_LOOKED_AT = 100_000
"""Maximum number of list items searched for those whose key is incomplete in the manifest; beyond, it is drift."""


# --- plain comparison


def needs_update(merged: Object, live: Object) -> bool:
    """Whether the object to write differs from the live one; numbers compare by value."""
    return not _equal(_comparable(merged), _comparable(live))


def _comparable(obj: Object) -> Object:
    # Our writes contain no managed fields, so they stay unchanged.
    meta = {name: value for name, value in metadata(obj).items() if name != "managedFields"}
    return {**obj, "metadata": meta}


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, dict):
        return (
            isinstance(b, dict)
            and len(a) == len(b)
            and all(name in b and _equal(value, b[name]) for name, value in a.items())
        )
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_equal, a, b))
    # In Python True equals 1; in JSON it does not.
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


_VOLATILE = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


_REVISION = "deployment.kubernetes.io/revision"
"""Annotation that the controller of Deployments sets a moment after each of our writes."""


def merge_patch(old: Object, new: Object) -> Object:
    """Difference as a JSON merge patch: None for a removed field, at any depth."""
    changes: Object = {}
    for name in old.keys() | new.keys():
        before, after = _content(old.get(name)), _content(new.get(name))
        if isinstance(before, dict) and isinstance(after, dict):
            if inner := merge_patch(before, after):
                changes[name] = inner
        elif not _equal(before, after):
            changes[name] = after
    return changes


def _content(value: Any) -> Any:
    """Treat an empty list, mapping or text as absent; the number 0 is not."""
    return None if isinstance(value, (dict, list, str)) and not value else value


def content_hash(obj: Object) -> bytes:
    """Hash of 16 bytes over everything that can drift: without status, and without counters and stamps of the API
    server.
    """
    meta = {name: value for name, value in metadata(obj).items() if name not in _VOLATILE}
    if _REVISION in annotations(obj):
        meta["annotations"] = {name: text for name, text in annotations(obj).items() if name != _REVISION}
    content = {name: value for name, value in obj.items() if name != _STATUS} | {"metadata": meta}
    return digest(content)


# --- comparison by origin of the difference


@dataclass(frozen=True, slots=True)
class Difference:
    path: tuple[str | int, ...]
    value: Any = None
    """Value in the manifest."""
    is_missing: bool = False
    """Only the manifest has the field, and the live object is the same around it."""

    def below(self, step: str | int, *, is_same: bool = True) -> Self:
        return replace(self, path=(step, *self.path), is_missing=self.is_missing and is_same)

    def __str__(self) -> str:
        return path_text(self.path)


def path_text(path: Sequence[str | int]) -> str:
    """Format a path like API servers do: `spec.containers[0].image`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


_NONE: Sequence[Difference] = ()


def is_drifted(merged: Object, live: Object, *, field_manager: str, dropped: Collection[str] = ()) -> bool:
    """Whether another writer changed our object. The manifest must be unchanged since our last successful write.

    Args: field_manager: our own. dropped: paths that the API server did not store then.
    """
    if _managed_fields(live, field_manager) is None:
        return needs_update(merged, live)
    return any(not (found.is_missing and str(found) in dropped) for found in _differences(merged, live, field_manager))


def dropped_fields(sent: Object, answer: Object, *, field_manager: str) -> list[Difference]:
    """Fields that the API server, or admission, did not store of our write, according to its response."""
    if _is_stored(sent, answer):
        return []
    return [found for found in _differences(sent, answer, field_manager) if found.is_missing]


def _is_stored(sent: Any, answer: Any, *, in_list: bool = False) -> bool:
    """Whether certainly nothing is missing, which is the common case; items of lists may have been sorted."""
    if sent == answer:
        return True
    if isinstance(sent, dict):
        if not isinstance(answer, dict):
            return False
        return all(_is_stored(value, answer.get(name), in_list=in_list) for name, value in sent.items())
    if isinstance(sent, list):
        if not isinstance(answer, list) or len(sent) != len(answer):
            return False
        return all(_is_stored(item, other, in_list=True) for item, other in zip(sent, answer, strict=True))
    return bool(sent == answer) if in_list else answer is not None


def is_reportable(dropped: Difference) -> bool:
    """Whether a dropped field may matter to a user: it has a value, and no server stamps it."""
    if len(dropped.path) == 2 and dropped.path[0] == "metadata" and dropped.path[1] in _VOLATILE:
        return False
    return not _is_nothing(dropped.value)


def _is_nothing(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_nothing, value.values()))
    if isinstance(value, list):
        return all(map(_is_nothing, value))
    return not value


def _differences(merged: Object, live: Object, field_manager: str) -> Sequence[Difference]:
    fields = _managed_fields(live, field_manager) or _Fields([], [])
    fields = replace(fields, drops_zeros=group_of(live.get("apiVersion") or "") in BUILT_IN_GROUPS)
    wanted = {name: value for name, value in _with_data(merged).items() if name != _STATUS}
    present = {name: value for name, value in _comparable(live).items() if name != _STATUS}
    return _of_mappings(wanted, present, fields)


def _with_data(merged: Object) -> Object:
    """Secret as stored by the API server: `stringData` becomes `data`."""
    texts = merged.get("stringData")
    if merged.get("kind") != "Secret" or merged.get("apiVersion") != "v1" or not isinstance(texts, dict):
        return merged
    encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
    rest = {name: value for name, value in merged.items() if name != "stringData"}
    return {**rest, "data": {**(merged.get("data") or {}), **encoded}}


@dataclass(frozen=True, slots=True)
class _Fields:
    """Field owners at one place of the object: subtrees of `fieldsV1`, of others and of ourselves.

    `whole`: another manager owns an enclosing value as a whole, and thus everything in it.
    """

    others: Sequence[Mapping[str, Any]]
    own: Sequence[Mapping[str, Any]]
    whole: bool = False
    drops_zeros: bool = False
    """Whether the API server may store nothing for 0 and false, as it does for optional fields of its own kinds."""

    @property
    def foreign(self) -> bool:
        return self.whole or bool(self.others)

    def below(self, step: str) -> "_Fields":
        return _Fields(
            [node[step] for node in self.others if step in node],
            [node[step] for node in self.own if step in node],
            self.whole or any(not node for node in self.others),
            self.drops_zeros,
        )

    def item_keys(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Steps to items of a list that are identified by some of their fields, with these fields."""
        for node in (*self.others, *self.own):
            for step in node:
                if step.startswith("k:"):
                    yield step, json.loads(step[2:])


def own_fields(live: Object, field_manager: str) -> Iterator[Object]:
    """Fields that this field manager has set, as `fieldsV1` records them; without subresources such as the status."""
    for entry in mappings(metadata(live).get("managedFields")):
        if _is_own(entry, field_manager):
            yield mapping(entry.get("fieldsV1"))


def fields_of_others(live: Object, field_manager: str) -> list[Object] | None:
    """Fields that other clients have set, in the same form; None if the API server has recorded no owners."""
    entries = mappings(metadata(live).get("managedFields"))
    others = [mapping(each.get("fieldsV1")) for each in entries if not _is_own(each, field_manager)]
    return others if entries else None


def _is_own(entry: Object, field_manager: str) -> bool:
    is_own = (entry.get("manager"), entry.get("operation")) == (field_manager, "Update")
    return is_own and not entry.get("subresource")


def _managed_fields(live: Object, field_manager: str) -> _Fields | None:
    """Owners of the fields; None if they are not recorded, or not for this version."""
    others: list[Mapping[str, Any]] = []
    own: list[Mapping[str, Any]] = []
    entries = metadata(live).get("managedFields") or []
    for entry in entries:
        fields = entry.get("fieldsV1")
        if not fields or entry.get("subresource") == _STATUS:
            continue
        if entry.get("apiVersion") != live.get("apiVersion"):
            return None
        (own if _is_own(entry, field_manager) else others).append(fields)
    return _Fields(others, own) if entries else None


def _of_values(wanted: Any, present: Any, fields: _Fields) -> Sequence[Difference]:
    if wanted is _MISSING or wanted is None:
        return _differs(fields.foreign and present is not None)
    if present is _MISSING or present is None:
        is_empty = _is_empty(wanted, zeros=fields.drops_zeros)
        return _NONE if is_empty else (Difference((), wanted, is_missing=True),)
    if isinstance(wanted, dict) and isinstance(present, dict):
        return _of_mappings(wanted, present, fields)
    if isinstance(wanted, list) and isinstance(present, list):
        return _of_lists(wanted, present, fields)
    if isinstance(wanted, dict | list) or isinstance(present, dict | list):
        return _differs(True)
    return _differs(fields.foreign and not _equal(wanted, present))


def _differs(is_so: bool) -> Sequence[Difference]:
    return (Difference(()),) if is_so else _NONE


def _is_empty(value: Any, *, zeros: bool) -> bool:
    """Whether the API server may omit this value when it stores the object."""
    if isinstance(value, dict):
        return all(_is_empty(inner, zeros=zeros) for inner in value.values())
    return value is None or value == [] or (zeros and not isinstance(value, str) and value == 0)


def _of_mappings(wanted: Object, present: Object, fields: _Fields) -> Sequence[Difference]:
    found: list[Difference] = []
    for name in (*wanted, *(name for name in present if name not in wanted)):
        of_value = _of_values(wanted.get(name, _MISSING), present.get(name, _MISSING), fields.below(f"f:{name}"))
        if of_value:
            found += [each.below(name) for each in of_value]
    return found


def _of_lists(wanted: list[Any], present: list[Any], fields: _Fields) -> Sequence[Difference]:
    if _equal(wanted, present):
        return _NONE
    steps = dict(fields.item_keys())
    if steps:
        return _of_keyed_lists(wanted, present, fields, steps)
    # A list that is owned as a whole, by us or without an owner. Additional items resulted from our own write.
    if fields.foreign or len(wanted) > len(present):
        return _differs(True)
    found: list[Difference] = []
    for position, (item, other) in enumerate(zip(wanted, present, strict=False)):
        if of_item := _of_values(item, other, fields):
            # Items may have been sorted: then nothing is missing.
            is_same = len(wanted) == len(present) and _has_same_scalars(item, other)
            found += [each.below(position, is_same=is_same) for each in of_item]
    return found


def _has_same_scalars(item: Any, other: Any) -> bool:
    if not (isinstance(item, dict) and isinstance(other, dict)):
        return False
    return all(
        _equal(item[name], other[name])
        for name in item.keys() & other.keys()
        if not isinstance(item[name], dict | list)
    )


def _of_keyed_lists(
    wanted: list[Any], present: list[Any], fields: _Fields, steps: dict[str, dict[str, Any]]
) -> Sequence[Difference]:
    """Match items by their key fields, such as port and protocol."""
    if not all(isinstance(item, dict) for item in [*wanted, *present]):
        return _differs(True)
    names = tuple(sorted({name for key in steps.values() for name in key}))
    steps_of, looked = _Steps.of(steps), iter(range(_MOST_LOOKED_AT))
    rest = dict(enumerate(present))
    by_values: dict[object, list[int]] = {}
    for position in reversed(rest):
        by_values.setdefault(_values(present[position], names), []).append(position)
    positions: list[int] = []
    found: list[Difference] = []
    for index, item in enumerate(wanted):
        if all(name in item for name in names):
            alike = by_values.get(_values(item, names), [])
            while alike and alike[-1] not in rest:
                alike.pop()
            match = alike[-1] if alike else None
        else:
            # A key field that the manifest lacks has got its default.
            match = next(
                (
                    position
                    for (position, other), _ in zip(rest.items(), looked, strict=False)
                    if all(_equal(item[name], other.get(name, _MISSING)) for name in names if name in item)
                ),
                None,
            )
        if match is None:
            return _differs(True)
        positions.append(match)
        other = rest.pop(match)
        of_item = _of_mappings(item, other, fields.below(steps_of.step(other)))
        found += [each.below(index) for each in of_item]
    if positions != sorted(positions) or any(fields.below(steps_of.step(other)).foreign for other in rest.values()):
        return _differs(True)
    return found


@dataclass(frozen=True, slots=True)
class _Steps:
    """Index of the steps to items, for lists with thousands of items."""

    by_names: Mapping[tuple[str, ...], Mapping[object, str]]
    """Steps by the names of the key fields, then by their values."""

    @classmethod
    def of(cls, steps: Mapping[str, dict[str, Any]]) -> Self:
        found: dict[tuple[str, ...], dict[object, str]] = {}
        for step, key in steps.items():
            found.setdefault(tuple(key), {}).setdefault(_values(key, tuple(key)), step)
        return cls(found)

    def step(self, item: Object) -> str:
        """Step to an item; empty if there is none."""
        found = (steps.get(_values(item, names)) for names, steps in self.by_names.items())
        return next(filter(None, found), "")


def _values(item: Object, names: tuple[str, ...]) -> object:
    """Hashable key of these fields: equal for two items if `_equal` holds for each field."""
    values = [item.get(name, _MISSING) for name in names]
    return tuple(
        json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else (isinstance(value, bool), value)
        for value in values
    )
