"""Reports of a gardenlet on the next reconciliation of a Shoot: the objects that it would change, and how.

The gardenlet makes reports, `kubectl gardener diff` shows them. Objects in them are fit for people to read: without
status and the counters of API servers, and with marks in place of secret values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kube.objects import Object, mapping, mappings, text

REFUSED = "NoPreview"
"""Reason of the Status that explains why there is no report."""


class Place(StrEnum):
    """The cluster of an object."""

    GARDEN = "garden"
    SEED = "seed"
    SHOOT = "shoot"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectDifference:
    """Difference of an object.

    Attributes:
        name: with namespace; if another object replaces it, the name of the new one.
        within: ManagedResource that contains it, if the resource manager writes it.
        before, after: None if the object does not exist then.
        problem: reason why it can't be written.
    """

    place: Place
    api_version: str
    kind: str
    name: str
    within: str = ""
    before: Object | None = None
    after: Object | None = None
    problem: str = ""

    def data(self) -> dict[str, Any]:
        texts = {"within": self.within, "problem": self.problem}
        return {
            "place": self.place.value,
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            **{name: value for name, value in texts.items() if value},
            "before": self.before,
            "after": self.after,
        }

    @classmethod
    def of(cls, data: Object) -> "ObjectDifference":
        place = text(data.get("place"))
        return cls(
            place=Place(place) if place in set(Place) else Place.SEED,
            api_version=text(data.get("apiVersion")),
            kind=text(data.get("kind")),
            name=text(data.get("name")),
            within=text(data.get("within")),
            before=None if data.get("before") is None else mapping(data.get("before")),
            after=None if data.get("after") is None else mapping(data.get("after")),
            problem=text(data.get("problem")),
        )


@dataclass(frozen=True, slots=True)
class UnknownTask:
    """A task, by name, whose changes are unknown until it, or an earlier task, is carried out."""

    task: str
    reason: str


@dataclass(frozen=True, slots=True)
class DifferenceReport:
    differences: Sequence[ObjectDifference]
    unknown: Sequence[UnknownTask] = ()

    def data(self) -> dict[str, Any]:
        return {
            "differences": [each.data() for each in self.differences],
            "unknown": [{"task": each.task, "reason": each.reason} for each in self.unknown],
        }

    @classmethod
    def of(cls, data: Object) -> "DifferenceReport":
        return cls(
            [ObjectDifference.of(each) for each in mappings(data.get("differences"))],
            [UnknownTask(text(each.get("task")), text(each.get("reason"))) for each in mappings(data.get("unknown"))],
        )
