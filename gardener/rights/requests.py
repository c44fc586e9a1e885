"""Requests to an API server, as an authorizer sees them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selector:
    """A selector, parsed by the API server; `raw`: as its user wrote it."""

    raw: str = ""
    requirements: tuple[Requirement, ...] = ()

    def demands(self, key: str, value: str) -> bool:
        """Whether the parsed selector selects nothing without this value."""
        wanted = Requirement(key, "In", (value,))
        return wanted in self.requirements


NO_SELECTOR = Selector()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """User, verb and object of a request; empty strings where the request has none.

    Attributes:
        path: of a request that is not about objects.
    """

    user: str
    groups: Sequence[str] = ()
    is_resource_request: bool = True
    path: str = ""
    verb: str = ""
    namespace: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    field_selector: Selector = NO_SELECTOR
    label_selector: Selector = NO_SELECTOR
