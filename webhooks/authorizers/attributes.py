"""A request that is to be authorized, and what is decided about it."""

from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selector:
    """As the API server parsed it, or as its user wrote it."""

    raw: str = ""
    requirements: tuple[Requirement, ...] = ()

    def demands(self, key: str, value: str) -> bool:
        """Whether it, as it was parsed, selects nothing without this value."""
        wanted = Requirement(key, "In", (value,))
        return wanted in self.requirements


NO_SELECTOR = Selector()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Who wants to do what; empty strings where nothing is said."""

    user: str
    groups: Sequence[str] = ()
    is_resource_request: bool = True
    verb: str = ""
    namespace: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    field_selector: Selector = NO_SELECTOR
    label_selector: Selector = NO_SELECTOR
