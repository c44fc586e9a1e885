"""Decisions of an authorizer."""

from dataclasses import dataclass
from enum import Enum, auto


class Effect(Enum):
    ALLOW = auto()
    DENY = auto()
    NO_OPINION = auto()


@dataclass(frozen=True, slots=True)
class Decision:
    effect: Effect
    reason: str = ""


ALLOW = Decision(Effect.ALLOW)
NO_OPINION = Decision(Effect.NO_OPINION)


def deny(reason: str = "") -> Decision:
    return Decision(Effect.DENY, reason)
