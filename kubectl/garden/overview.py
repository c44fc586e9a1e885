"""State of a Shoot in a line of a list: its most important problem or operation."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from gardener import keys
from gardener.garden.shoots import FAILED, SUCCEEDED, is_current, last_errors, last_operation, seeds_of
from gardener.operations import ERROR
from kube.objects import Object, integer, is_deleting, is_truthy, key, mappings, metadata, spec, text
from kube.paths import at
from kubectl.garden.why.finding import one_line
from kubectl.style import BLUE, DIM, GREEN, RED, YELLOW, Line, Word, age, shortened

_WIDTH = 100


class Rank(IntEnum):
    """Order of a list: problems first."""

    FAILED = 0
    ERROR = 1
    UNCONFIRMED = 2
    UNHEALTHY = 3
    WAITING = 4
    WORKING = 5
    HEALTHY = 6
    HIBERNATED = 7


_COLORS = {
    Rank.FAILED: RED,
    Rank.ERROR: RED,
    Rank.UNCONFIRMED: YELLOW,
    Rank.UNHEALTHY: RED,
    Rank.WAITING: YELLOW,
    Rank.WORKING: BLUE,
    Rank.HEALTHY: GREEN,
    Rank.HIBERNATED: DIM,
}


@dataclass(frozen=True, slots=True)
class State:
    rank: Rank
    word: str
    message: str = ""


def state_of(shoot: Object) -> State:
    last = last_operation(shoot)
    kind, state = text(last.get("type")), text(last.get("state"))
    if state in {FAILED, ERROR}:
        errors = last_errors(shoot) or [last]
        message = one_line(errors[0].get("description"))
        return State(Rank.FAILED if state == FAILED else Rank.ERROR, f"{kind}{state}", message)
    if is_deleting(shoot) and not is_truthy(metadata(shoot).get("annotations", {}).get(keys.CONFIRM_DELETION)):
        return State(Rank.UNCONFIRMED, "Unconfirmed", "the deletion waits for its confirmation")
    if state == SUCCEEDED and not is_deleting(shoot):
        bad = [each for each in mappings(at(shoot, "status", "conditions")) if _is_bad(each)]
        if bad:
            named = ", ".join(text(each.get("type")) for each in bad)
            return State(Rank.UNHEALTHY, "Unhealthy", f"{named}: {one_line(bad[0].get('message'))}")
    if not seeds_of(shoot):
        return State(Rank.WAITING, "Pending", "waits for a Seed")
    if not last or (state == SUCCEEDED and not is_current(shoot)):
        return State(Rank.WAITING, "Pending", f"waits for the gardenlet of Seed {seeds_of(shoot)[-1]}")
    if state != SUCCEEDED or is_deleting(shoot):
        message = f"{integer(last.get('progress'))} %: {one_line(last.get('description'))}"
        return State(Rank.WORKING, f"{kind}{state}", message)
    if at(shoot, "status", "hibernated") is True:
        return State(Rank.HIBERNATED, "Hibernated")
    return State(Rank.HEALTHY, "Healthy")


def _is_bad(condition: Object) -> bool:
    return condition.get("status") not in {"True", "Progressing"}


HEADER = ("NAMESPACE", "NAME", "STATE", "SEED", "VERSION", "AGE", "MESSAGE")


def row(shoot: Object, state: State, *, now: datetime, wide: bool) -> Line:
    own = key(shoot)
    return [
        own.namespace,
        own.name,
        Word(state.word, _COLORS[state.rank]),
        " → ".join(reversed(seeds_of(shoot))) or "-",
        text(at(spec(shoot), "kubernetes", "version")) or "-",
        age(text(metadata(shoot).get("creationTimestamp")), now),
        state.message if wide else shortened(state.message, _WIDTH),
    ]
