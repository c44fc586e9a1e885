"""Admission requests and answers as handlers see them; `webhooks.review` converts them from and to JSON.

A handler gets a `Request` and returns an `Answer`. Most webhooks are simpler than that: they change one object of the
request, or accept or refuse it. `webhooks.generic` has wrappers for these, so that a webhook's module holds nothing but
its rule.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from kube.objects import Object


class Kind(NamedTuple):
    """Group, version and kind; the core group is the empty one."""

    group: str
    version: str
    kind: str


class ResourceName(NamedTuple):
    """Group, version and plural."""

    group: str
    version: str
    resource: str


class User(msgspec.Struct, frozen=True):
    """User that sent the request, after impersonation."""

    name: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Request of the API server; absent values are empty strings and None."""

    uid: str
    kind: Kind
    resource: ResourceName
    operation: str
    """`CREATE`, `UPDATE`, `DELETE`, `CONNECT`."""
    name: str
    namespace: str
    """Authoritative: a new object may lack its own."""
    object: Any = None
    """JSON of the object as it would be stored; of any type until a handler has checked it."""
    old_object: Any = None
    options: Any = None
    """CreateOptions, UpdateOptions, or DeleteOptions, as JSON."""
    dry_run: bool = False
    subresource: str = ""
    user: User = User()


@dataclass(frozen=True, slots=True)
class Allowed:
    message: str = ""
    warnings: tuple[str, ...] = ()
    """Passed on to the user by the API server."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Allowed, with `after` instead of `before`; no patch if they are equal."""

    before: Object
    after: Object
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Denied:
    """Refused by a rule: 403."""

    message: str


@dataclass(frozen=True, slots=True)
class Errored:
    """The rule could not be applied."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Refused with a complete Kubernetes Status, passed through unchanged."""

    status: Object
    warnings: tuple[str, ...] = ()


Answer = Allowed | Changed | Denied | Errored | Failure

Handler = Callable[[Request], Awaitable[Answer]]


class Refusal(Exception):
    """Raised by a rule that cannot continue; the API server gets `answer`.

    A `kube.errors.ApiError` raised by a rule becomes a `Failure` with that Status, at any position in the chain of
    causes; other errors of communication with an API server become a `Denied` with their text. Any other exception is a
    bug in the rule.
    """

    def __init__(self, answer: Denied | Errored | Failure) -> None:
        super().__init__(answer)
        self.answer = answer


Mutation = Callable[[Request, Object], Awaitable[None]]
"""Change the object in place, only where the rule applies; see `Refusal` for errors."""
