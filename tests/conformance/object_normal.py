"""What the normal forms of a garden's objects and of a seed's have in common.

What differs from run to run is left out, and what other scenarios add. Times become relative to now, names those of the
recording; what is listed in any order is sorted.
"""

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from kube.objects import Object

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d| \+0000 UTC)(?: m=\+[0-9.]+)?")
_NEAR = 900
"""Seconds around now that count as now: it is not known when exactly something was written."""

_VOLATILE = {
    *("creationTimestamp", "deletionGracePeriodSeconds", "generateName", "generation", "managedFields"),
    *("resourceVersion", "selfLink", "uid"),
}
_CREATED_BY = "gardener.cloud/created-by"
_OPERATION = "gardener.cloud/operation"
_OF_CONDITIONS = ("type", "status", "reason", "message", "codes")
_EMPTY_AT_FIRST = ("gardener", "technicalID", "uid", "clusterIdentity", "hibernated")
_EMPTY: tuple[Any, ...] = ("", {}, False, {"id": "", "name": "", "version": ""})


def project_name(run: int, number: int) -> str:
    """Of 8 characters; those of a run differ in the last three. Args: run: below 65536."""
    return f"c{run:04x}{number:03}"


class ObjectNormal(ABC):
    """The normal forms of one scenario's objects. Args: name: of its Project; hidden: types of conditions."""

    keeps_empty: ClassVar[bool] = False
    """Whether an object is compared that has none of the fields below a part that is compared."""

    def __init__(self, name: str, *, hidden: Container[str] = ()) -> None:
        self._name, self._namespace, self._hidden = name, f"garden-{name}", hidden
        # Those of the same run: hashes look like names of others.
        self._others = re.compile(rf"\b{name[:-3]}\d{{3}}\b")

    def is_foreign(self, name: str) -> bool:
        """Whether it belongs to another scenario."""
        return self._name not in name and self._others.search(name) is not None

    def text(self, text: str) -> str:
        """Of a name or of a field."""
        text = _TIME.sub(lambda found: self._moment(found[0]), _UID.sub("<uid>", text))
        return text.replace(self._namespace, "$NS")

    def _moment(self, text: str) -> str:
        try:
            then = datetime.fromisoformat(f"{text.replace(' ', 'T')[:19]}+00:00")
        except ValueError:
            return "<time>"
        seconds = (then - datetime.now(UTC)).total_seconds()
        return "<now>" if abs(seconds) < _NEAR else self.from_now(seconds)

    @abstractmethod
    def fields_of(self, obj: Object) -> Sequence[str] | None:
        """Which are compared beside the metadata, unless the scenario states; None: all."""

    @abstractmethod
    def from_now(self, seconds: float) -> str:
        """A moment that is not about now."""

    @abstractmethod
    def reduce(self, obj: Object) -> None:
        """Leave out of a copy what differs from run to run, beside metadata and status."""

    def status(self, kind: str, status: Object, generation: int | None) -> Object:
        """Args: generation: of the object."""
        kept = dict(status)
        if kind in {"Seed", "Shoot"}:
            kept = {name: value for name, value in kept.items() if name not in _EMPTY_AT_FIRST or value not in _EMPTY}
        for name in ("conditions", "constraints"):
            if name in kept:
                kept[name] = sorted(self._conditions(kept[name] or ()), key=lambda each: str(each["type"]))
        if "observedGeneration" in kept:
            kept["observedGeneration"] = "current" if kept["observedGeneration"] == generation else "stale"
        return kept

    def _conditions(self, conditions: Iterable[Object]) -> Iterator[Object]:
        for each in conditions:
            if each["type"] not in self._hidden:
                yield {field: each[field] for field in _OF_CONDITIONS if field in each}

    def of(self, live: Object | None, fields: Sequence[str] | None = None) -> Any:
        """Args: fields: that are compared beside the metadata, or instead of it after `!metadata`; None: `fields_of` it."""
        if live is None:
            return "absent"
        obj, generation = copy.deepcopy(live), live["metadata"].get("generation")
        obj.pop("operation", None)
        obj["metadata"] = _metadata(obj)
        if isinstance(obj.get("status"), dict):
            obj["status"] = self.status(obj["kind"], obj["status"], generation)
            if not obj["status"]:
                del obj["status"]
        self.reduce(obj)
        normal = self.walk(obj)
        chosen = self.fields_of(obj) if fields is None else fields
        return normal if chosen is None else self._only(normal, chosen)

    def walk(self, value: Any) -> Any:
        match value:
            case dict():
                return {
                    self.text(name): self.walk(inner)
                    for name, inner in value.items()
                    if not self.is_foreign(name)
                    and not (inner in ({}, []) and name in {"labels", "annotations", "finalizers"})
                    and not (inner is None and name == "creationTimestamp")
                }
            case list():
                return [self.walk(inner) for inner in value if not (isinstance(inner, str) and self.is_foreign(inner))]
            case str():
                return self.text(value)
            case _:
                return value

    def _only(self, obj: Object, fields: Sequence[str]) -> Object:
        has_metadata = fields[:1] != ["!metadata"]
        kept: Object = {}
        for path in ("metadata", *fields) if has_metadata else fields[1:]:
            *parents, last = path.split(".")
            source, target = obj, kept
            for name in parents:
                if not isinstance(source.get(name), dict):
                    break
                source, target = source[name], target.setdefault(name, {})
            else:
                if last in source:
                    target[last] = source[last]
        if has_metadata and self.keeps_empty:
            return kept
        return {name: value for name, value in kept.items() if value != {}}


def without_texts(value: Any) -> Any:
    """Without what is for people: messages of conditions and Events, descriptions."""
    match value:
        case dict():
            texts = {"description", "failureReason", *({"message"} if {"reason", "status"} <= value.keys() else ())}
            return {name: without_texts(inner) for name, inner in value.items() if name not in texts}
        case list():
            return [
                re.sub(r"^((?:Normal|Warning) \w+): .*", r"\1", each, flags=re.DOTALL)
                if isinstance(each, str)
                else without_texts(each)
                for each in value
            ]
        case _:
            return value


def _metadata(obj: Object) -> Object:
    meta: Object = {
        name: True if name == "deletionTimestamp" else value
        for name, value in obj["metadata"].items()
        if name not in _VOLATILE
    }
    for reference in meta.get("ownerReferences", []):
        reference.pop("uid", None)
    written, kind = meta.get("annotations") or {}, obj["kind"]
    written.pop(_CREATED_BY, None)
    if kind == "Shoot" and written.get(_OPERATION) == "reconcile":
        del written[_OPERATION]  # what else the same request changes decides whether it is consumed at once
    if kind == "Namespace":
        (meta.get("labels") or {}).pop("kubernetes.io/metadata.name", None)
    if isinstance(meta.get("finalizers"), list):
        meta["finalizers"] = sorted(meta["finalizers"])
    return meta
