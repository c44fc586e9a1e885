"""An admission request and its answers, as handlers see them; `webhooks.review` carries them over the wire.

A handler gets a `Request` and returns an `Answer`. Most webhooks are simpler than that: they change one object of the
request, or accept or refuse it. For these there are wrappers in `webhooks.generic`, so that a webhook's module holds
nothing but its rule.
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
    """Who sent the request, after impersonation."""

    name: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the API server asks; empty strings and None where it says nothing."""

    uid: str
    kind: Kind
    resource: ResourceName
    operation: str
    """`CREATE`, `UPDATE`, `DELETE`, `CONNECT`."""
    name: str
    namespace: str
    """Authoritative: the object's own may be missing when it is created."""
    object: Any = None
    """The JSON of the object as it would be stored; anything at all, until a handler has looked."""
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
    """What the API server passes on to the user."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Allowed, as `after` instead of `before`; equal ones make no patch."""

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
    """Refused with a whole Kubernetes Status, handed through as it is."""

    status: Object
    warnings: tuple[str, ...] = ()


Answer = Allowed | Changed | Denied | Errored | Failure

Handler = Callable[[Request], Awaitable[Answer]]


class Refusal(Exception):
    """Raised by a rule that can't go on; `answer` is what the API server gets.

    A `kube.errors.ApiError` that a rule lets through becomes a `Failure` with that Status, wherever it stands in the
    chain of causes; other errors of talking to an API server become a `Denied` with their text. Anything else is a
    mistake in the rule.
    """

    def __init__(self, answer: Denied | Errored | Failure) -> None:
        super().__init__(answer)
        self.answer = answer


Mutation = Callable[[Request, Object], Awaitable[None]]
"""Changes the object in place, and touches nothing but what its rule is about. Raises as `Refusal` says."""
