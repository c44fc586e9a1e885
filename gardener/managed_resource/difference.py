"""Whether an object has to be written.

Two questions. `needs_update` compares plainly: is the live object other than the one to write? That is right when the
manifest may have changed, but server defaults make nearly every object differ from its manifest.

So when the manifest is known to be as it was at the last successful write, `is_drifted` asks who made the difference.
Every difference then stems either from our own write (the API server filled in defaults, rewrote `1000m` to `1`,
dropped what it doesn't know) or from somebody else. The API server records in `metadata.managedFields` who last set
which field:

- A field that differs, or that only the live object has, is drift if another manager owns it. If it is ours or
  nobody's, then it came about with our own write.
- A field that only the manifest has is drift: was it removed by somebody or dropped by the API server? Removals are not
  recorded, and a needless write does no harm. What the API server is known not to store (null, empty lists and
  mappings; for built-in kinds 0 and false as well) does not count, and `stringData` of a Secret is looked for in its
  `data`.

Whenever it is not certain, it is drift.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gardener.keys import FIELD_MANAGER
from kube.bodies import digest
from kube.objects import Object, group_of, metadata

_STATUS = "status"
_BUILT_IN_GROUPS = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apps",
        "autoscaling",
        "batch",
        "networking.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
_MISSING: Any = object()


# --- plain comparison


def needs_update(merged: Object, live: Object) -> bool:
    """Whether the object to write differs from the live one; numbers compare by value."""
    return not _equal(_comparable(merged), _comparable(live))


def _comparable(obj: Object) -> Object:
    # What we send has no managed fields, so they stay as they are.
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
    # To Python True is 1; in JSON it is not.
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


def content_hash(obj: Object) -> bytes:
    """16 bytes over all that drift can show in: not status, nor what the API server counts and stamps itself."""
    meta = {name: value for name, value in metadata(obj).items() if name not in _VOLATILE}
    content = {name: value for name, value in obj.items() if name != _STATUS} | {"metadata": meta}
    return digest(content)


# --- comparison with regard to who made the difference


def is_drifted(merged: Object, live: Object) -> bool:
    """Whether somebody else changed what we wrote. The manifest must be as it was at our last successful write."""
    fields = _managed_fields(live)
    if fields is None:
        return needs_update(merged, live)
    fields = replace(fields, drops_zeros=group_of(live.get("apiVersion") or "") in _BUILT_IN_GROUPS)
    wanted = {name: value for name, value in _with_data(merged).items() if name != _STATUS}
    present = {name: value for name, value in _comparable(live).items() if name != _STATUS}
    return _mapping_drifted(wanted, present, fields)


def _with_data(merged: Object) -> Object:
    """A Secret as the API server stores it: `stringData` becomes `data`."""
    texts = merged.get("stringData")
    if merged.get("kind") != "Secret" or merged.get("apiVersion") != "v1" or not isinstance(texts, dict):
        return merged
    encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
    rest = {name: value for name, value in merged.items() if name != "stringData"}
    return {**rest, "data": {**(merged.get("data") or {}), **encoded}}


@dataclass(frozen=True, slots=True)
class _Fields:
    """Who owns what at one place of the object: subtrees of `fieldsV1`, of others and of ourselves.

    `whole` says that somebody else owns a value further up as a whole, and thus everything in it.
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
        """The steps to items of a list that are known by some of their fields, with these fields."""
        for node in (*self.others, *self.own):
            for step in node:
                if step.startswith("k:"):
                    yield step, json.loads(step[2:])


def _managed_fields(live: Object) -> _Fields | None:
    """None if it is not recorded, or not for this version, who owns what."""
    others: list[Mapping[str, Any]] = []
    own: list[Mapping[str, Any]] = []
    entries = metadata(live).get("managedFields") or []
    for entry in entries:
        fields = entry.get("fieldsV1")
        if not fields or entry.get("subresource") == _STATUS:
            continue
        if entry.get("apiVersion") != live.get("apiVersion"):
            return None
        ours = entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Update"
        (own if ours and not entry.get("subresource") else others).append(fields)
    return _Fields(others, own) if entries else None


def _drifted(wanted: Any, present: Any, fields: _Fields) -> bool:
    if wanted is _MISSING or wanted is None:
        return fields.foreign and present is not None
    if present is _MISSING or present is None:
        return not _is_empty(wanted, zeros=fields.drops_zeros)
    if isinstance(wanted, dict) and isinstance(present, dict):
        return _mapping_drifted(wanted, present, fields)
    if isinstance(wanted, list) and isinstance(present, list):
        return _list_drifted(wanted, present, fields)
    if isinstance(wanted, dict | list) or isinstance(present, dict | list):
        return True
    return fields.foreign and not _equal(wanted, present)


def _is_empty(value: Any, *, zeros: bool) -> bool:
    """Whether the API server may store nothing at all for it."""
    if isinstance(value, dict):
        return all(_is_empty(inner, zeros=zeros) for inner in value.values())
    return value is None or value == [] or (zeros and not isinstance(value, str) and value == 0)


def _mapping_drifted(wanted: Object, present: Object, fields: _Fields) -> bool:
    return any(
        _drifted(wanted.get(name, _MISSING), present.get(name, _MISSING), fields.below(f"f:{name}"))
        for name in (*wanted, *(name for name in present if name not in wanted))
    )


def _list_drifted(wanted: list[Any], present: list[Any], fields: _Fields) -> bool:
    if _equal(wanted, present):
        return False
    steps = dict(fields.item_keys())
    if steps:
        return _keyed_list_drifted(wanted, present, fields, steps)
    if fields.foreign:
        return True
    # A list that is owned as a whole, by us or by nobody. More items than we wrote came with our own write.
    return len(wanted) > len(present) or any(
        _drifted(item, other, fields) for item, other in zip(wanted, present, strict=False)
    )


def _keyed_list_drifted(
    wanted: list[Any], present: list[Any], fields: _Fields, steps: dict[str, dict[str, Any]]
) -> bool:
    """Items are matched by the fields that the API server knows them by, such as port and protocol."""
    if not all(isinstance(item, dict) for item in [*wanted, *present]):
        return True
    names = {name for key in steps.values() for name in key}
    rest = list(enumerate(present))
    positions: list[int] = []
    for item in wanted:
        # A field of the key that the manifest lacks has got its default.
        match = next(
            (
                (position, other)
                for position, other in rest
                if all(_equal(item[name], other.get(name, _MISSING)) for name in names if name in item)
            ),
            None,
        )
        if match is None:
            return True
        rest.remove(match)
        positions.append(match[0])
        if _mapping_drifted(item, match[1], _at_item(match[1], fields, steps)):
            return True
    if positions != sorted(positions):
        return True
    return any(_at_item(other, fields, steps).foreign for _, other in rest)


def _at_item(item: Object, fields: _Fields, steps: dict[str, dict[str, Any]]) -> _Fields:
    step = next(
        (step for step, key in steps.items() if all(_equal(item.get(n, _MISSING), v) for n, v in key.items())), ""
    )
    return fields.below(step)
