"""From a seed to a plan: what users do and which faults strike, each at its time. Pure; the same seed, the same plan.

Strikes come in lanes. Those of a lane follow each other, so that each is healed before the next; those of different
lanes overlap as they like. A lane deals its faults like a deck of cards: all of them before any comes again.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from campaign.model import Author, Edit, Model, apply_all, empty

CLUSTERS = ("source", "target")
ENDINGS = ("watch-closed", "watch-expired", "watch-reset", "watch-silent", "watch-truncated")
TROUBLES = (
    "internal-error",
    "internal-error-carried-out",
    "unavailable",
    "unavailable-carried-out",
    "throttled",
    "unauthorized",
    "expired",
    "reset",
    "reset-carried-out",
    "silence",
    "silence-carried-out",
    "delay",
    "trickle",
    "late-events",
    "repeated-events",
    *ENDINGS,
)


@dataclass(frozen=True, slots=True)
class Card:
    """A fault that a lane may deal: how many seconds it lasts, and what is to be chosen for it."""

    fault: str
    shortest: float
    longest: float
    choices: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    copies: int = 1


_CLUSTER = ("cluster", CLUSTERS)
_REPLICA = ("replica", (0, 1))
_AGENT = ("agent", ("leader", "follower", "second"))
"""The second one has a class of its own."""

LANES: dict[str, tuple[Card, ...]] = {
    "network": (
        Card("requests fail", 4, 12, (_CLUSTER, ("trouble", TROUBLES)), copies=4),
        Card("unreachable", 1, 8, (_CLUSTER,)),
        Card("connections dropped", 0, 1, (_CLUSTER,)),
        Card("watches end", 0, 1, (_CLUSTER, ("how", ENDINGS))),
    ),
    "processes": (
        Card("agent killed", 0, 2, (_AGENT,), copies=2),
        Card("agent stopped", 0, 2, (_AGENT,)),
        Card("agent frozen", 8, 11, (_AGENT,)),
        Card("webhook killed", 0, 2, (_REPLICA,)),
        Card("webhook stopped", 0, 2, (_REPLICA,)),
        Card("disk full for logs", 5, 12, (("program", ("agent", "webhook")), _REPLICA)),
        Card("clock jumped", 4, 10, (_REPLICA, ("seconds", (-86400, -60, 60, 7200, 86400)))),
        Card("lease disturbed", 0, 3, (("how", ("past", "future", "stranger", "deleted")),)),
    ),
    "clusters": (
        Card("API server restarted", 1, 6, (_CLUSTER, ("kill", (False, True))), copies=2),
        Card("etcd restarted", 1, 6, (_CLUSTER, ("kill", (False, True)))),
        Card("compacted", 0, 2, (_CLUSTER,)),
        Card("kind deleted", 3, 8),
        Card("namespace deleted", 2, 6),
        Card("objects changed by hand", 0, 1, (("share", (0.2, 0.5, 0.9)), ("delete", (False, True)))),
    ),
    "credentials": (
        Card("token rotated", 0, 1, (_CLUSTER, _REPLICA)),
        Card("token expired", 2, 12, (_CLUSTER, _REPLICA)),
        Card("certificates rotated", 0, 2),
        Card("certificate broken", 2, 8),
        Card("renewal times moved", 0, 1, (("how", ("past", "future", "garbled", "token lost")),)),
    ),
}


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds after the begin, users do this."""

    at: float
    edits: list[Edit]


@dataclass(frozen=True, slots=True)
class Strike:
    at: float
    lane: str
    fault: str
    seconds: float
    settings: dict[str, Any]

    def __str__(self) -> str:
        chosen = " ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.fault} {self.seconds:.1f} s {chosen}".rstrip()


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    seconds: float
    initial_edits: list[Edit]
    steps: list[Step]
    strikes: list[Strike]

    def model(self) -> Model:
        """What is wanted in the end."""
        return apply_all(empty(), [*self.initial_edits, *(edit for step in self.steps for edit in step.edits)])

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def make_plan(seed: int, *, seconds: float, haste: float = 1.0) -> Plan:
    """A plan for so many seconds of faults; with `haste` greater than 1, faults last shorter and come sooner."""
    author = Author(_dice(seed, "author"))
    initial_edits = author.initial_edits()
    steps = list(_steps(author, _dice(seed, "steps"), apply_all(empty(), initial_edits), seconds=seconds, haste=haste))
    strikes = [
        strike
        for lane, cards in LANES.items()
        for strike in _strikes(lane, cards, _dice(seed, lane), seconds=seconds, haste=haste)
    ]
    return Plan(seed, seconds, initial_edits, steps, sorted(strikes, key=lambda strike: (strike.at, strike.lane)))


def _dice(seed: int, purpose: str) -> Random:
    """Of their own, so that what is changed for one purpose changes nothing for others."""
    return Random(f"{seed}/{purpose}")


def _steps(author: Author, dice: Random, model: Model, *, seconds: float, haste: float) -> Iterator[Step]:
    at = 0.0
    while True:
        at += dice.uniform(0.2, 3.0) / haste
        if at >= seconds:
            return
        edits = author.edits(model)
        model = apply_all(model, edits)
        yield Step(round(at, 2), edits)


def _strikes(lane: str, cards: tuple[Card, ...], dice: Random, *, seconds: float, haste: float) -> Iterator[Strike]:
    deck: list[Card] = []
    at = dice.uniform(0, 4) / haste
    while True:
        if not deck:
            deck = [card for card in cards for _ in range(card.copies)]
            dice.shuffle(deck)
        card = deck.pop()
        lasts = dice.uniform(card.shortest, card.longest) / haste
        settings = {name: dice.choice(values) for name, values in card.choices}
        if at + lasts > seconds:
            return
        yield Strike(round(at, 2), lane, card.fault, round(lasts, 2), settings)
        at += lasts + dice.uniform(1, 6) / haste
