"""What the status of a Shoot reported in operations of a gardenlet of v1.104.3: all values of `lastOperation`, in order.

Descriptions name the tasks that run at that moment, so they depend on how long each of them takes. What does not: which
tasks there are, and that one ends before another starts. From the original, each start and end of a task is a value.
"""

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kube.objects import Object, integer, text

_FILE = Path(__file__).parent / "gardenlet/shoot-operations.json.xz"
CREATE, RECONCILE, SPEC_CHANGE, HIBERNATE, WAKE, DELETE = (
    "create",
    "reconcile",
    "spec-change",
    "hibernate",
    "wake",
    "delete",
)
PHASES = (CREATE, RECONCILE, SPEC_CHANGE, HIBERNATE, WAKE, DELETE)
"""Of the life of one Shoot without workers, in this order."""


class Said(NamedTuple):
    """A value of `lastOperation`, but for its time."""

    type: str
    state: str
    progress: int
    description: str


class Condition(NamedTuple):
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Operation:
    """Attributes:
    said: first to last.
    before: conditions and constraints by type, when it was about to succeed.
    after: the same, when it had.
    hibernated: as the status reports in the end.
    """

    reported: Sequence[Said]
    before: Mapping[str, Condition]
    after: Mapping[str, Condition]
    hibernated: bool

    @property
    def running(self) -> list[frozenset[str]]:
        """Names of the tasks that ran, at one moment after the other."""
        return [frozenset(each.description.split(", ")) for each in self.reported[2:-2]]

    @property
    def tasks(self) -> set[str]:
        return {name for names in self.running for name in names}

    def is_before(self, first: str, then: str) -> bool:
        """Whether the one task had ended when the other was seen to run."""
        at = {name: [i for i, names in enumerate(self.running) if name in names] for name in (first, then)}
        return max(at[first]) < min(at[then])


@cache
def recorded(phase: str) -> Operation:
    found = json.loads(lzma.decompress(_FILE.read_bytes()))[phase]
    before, after = ({name: Condition(*each) for name, each in found[when].items()} for when in ("before", "after"))
    return Operation([Said(*each) for each in found["operations"]], before, after, found["hibernated"])


def said_by(states: Sequence[Object]) -> list[Said]:
    """What a Shoot reported in one state after the other, without repetitions. Args: states: the Shoot, each time."""
    found = list[Said]()
    for each in states:
        last = (each.get("status") or {}).get("lastOperation") or {}
        kind, state, description = (text(last.get(name)) for name in ("type", "state", "description"))
        value = Said(kind, state, integer(last.get("progress")), description)
        if last and (not found or found[-1] != value):
            found.append(value)
    return found


def deviations(reported: Sequence[Said], phase: str, *, tasks: set[str]) -> Iterator[str]:
    """How this operation does not go as the recorded one. Args: tasks: names of those that may run in it."""
    theirs = recorded(phase).reported
    for of, ours, expected in (("first", reported[0], theirs[0]), ("last", reported[-1], theirs[-1])):
        if ours != expected:
            yield f"the {of} value is {ours}, and not {expected}"
    if kinds := {each.type for each in reported} - {each.type for each in theirs}:
        yield f"types are {kinds}"
    if {each.state for each in reported[:-1]} != {each.state for each in theirs[:-1]}:
        yield f"states are {[each.state for each in reported]}"
    if sorted(each.progress for each in reported) != [each.progress for each in reported]:
        yield f"the progress goes back: {[each.progress for each in reported]}"
    if len(set(reported)) != len(reported):
        yield "something is reported again after something else"
    for each in reported[1:-1]:
        texts = {theirs[1].description, theirs[-2].description}
        if each.description not in texts and (unknown := set(each.description.split(", ")) - tasks):
            yield f"{unknown} runs"
