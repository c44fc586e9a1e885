"""Request to write an object of the garden API, as rules see it.

Rules are pure functions of a `Write`: they read the object, the one that it replaces, the user, and other objects of
the garden through `write.garden`, which answers from memory. Neither this module nor rules talk to an API server.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import NoReturn, Protocol, Self, TypeAlias

from kube.objects import Key, Object, is_deleting, metadata
from kube.paths import at
from kube.resources import Resource
from webhooks.admission import User
from webhooks.garden.common.findings import Finding
from webhooks.rules.shapes import child

Index: TypeAlias = Callable[[Object], Iterable[Hashable]]

SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
_BOOKKEEPING = ("resourceVersion", "generation", "managedFields")


class GardenLister(Protocol):
    """Other objects for rules, only of kinds that the descriptor of the kind `reads`.

    The objects are shared: treat them as immutable.
    """

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return an object; None if the cache has none."""

    def need(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Like `get`, but None only if the API server confirms it, so that a refusal or a permission may rest on it."""

    def list(self, resource: Resource, namespace: str = "") -> Iterable[Object]:
        """Return all objects, or those of a namespace."""

    def by(self, resource: Resource, index: Index, value: Hashable) -> Sequence[Object]:
        """Return the objects for which this function, one of those in `webhooks.garden.lookups`, yields the value."""


class NeedsOtherObjects(Exception):
    """A rule needs objects of this kind, but there is no garden to read them from."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource.kind)
        self.resource = resource


class UnknownGarden:
    """Garden for rules that are checked without a cluster: every access raises `NeedsOtherObjects`."""

    def get(self, resource: Resource, *_: object) -> NoReturn:
        raise NeedsOtherObjects(resource)

    need = list = by = get


UNKNOWN_GARDEN = UnknownGarden()


@dataclass(eq=False, kw_only=True)
class Write:
    """One request; its objects have the shape of their kind.

    Treat as immutable; not frozen because construction is on the hot path.

    Attributes:
        operation: `CREATE`, `UPDATE` or `DELETE`.
        name: empty if the API server has not generated it yet (`generateName`, in mutations only).
        new: the object as it would be stored; mutations change it in place. For DELETE: the deleted object.
        old: the stored object; empty for CREATE.
        options: such as DeleteOptions.
    """

    operation: str
    namespace: str = ""
    name: str = ""
    user: User
    new: Object
    old: Object
    subresource: str = ""
    options: Object = field(default_factory=dict)
    garden: GardenLister = UNKNOWN_GARDEN
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def is_create(self) -> bool:
        return self.operation == "CREATE"

    @property
    def is_update(self) -> bool:
        return self.operation == "UPDATE"

    @property
    def is_deleting(self) -> bool:
        """Whether the stored object is being deleted and waits for its finalizers."""
        return is_deleting(self.old) or is_deleting(self.new)

    @property
    def spec(self) -> Object:
        """Spec of the new object; mutations use `own_spec`."""
        return self.new.get("spec") or {}

    def own_spec(self) -> Object:
        """Return the spec for mutations, created if it is missing."""
        return child(self.new, "spec")

    @property
    def old_spec(self) -> Object:
        return self.old.get("spec") or {}

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether an UPDATE, as it was sent, changes only bookkeeping and status."""
        if not self.is_update or self.spec_is_changed:
            return False
        return _others(self.new) == _others(self.old) and _meta(self.new) == _meta(self.old)

    @cached_property
    def spec_is_changed(self) -> bool:
        """Whether the spec, as it was sent, differs from the stored one."""
        return self.changed("spec")

    def changed(self, *path: str) -> bool:
        """Whether the value at a path differs from the stored one; on CREATE, whether there is one."""
        return bool(at(self.new, *path) != at(self.old, *path))

    def of_old(self) -> Self:
        """Same request with the stored object as the new one."""
        return replace(self, new=self.old)


def _others(obj: Object) -> Object:
    """Fields except metadata and status; the spec only as present or absent."""
    fields = {**obj, "spec": "spec" in obj}
    return {name: value for name, value in fields.items() if name not in {"metadata", "status"}}


def _meta(obj: Object) -> Object:
    return {name: value for name, value in metadata(obj).items() if name not in _BOOKKEEPING}


def is_service_account(user: str) -> bool:
    return user.startswith(SERVICE_ACCOUNT_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right that the user needs in addition to the request itself.

    Attributes:
        name, namespace: object of `verb`.
        denial: text of the refusal.
        path: field that names the object. A user who may not read an object must not learn whether it exists: other
        findings at the path are dropped.
    """

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    denial: str
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Maximum number of other objects of a kind. They are counted at the API server, since caches lag.

    Attributes:
        field_selectors: disjoint selectors that together match all of them.
        own: key of the object itself, which does not count; None if it is of another kind.
        most: less than zero if not even this one is permitted.
        denial: text of the refusal.
        path: field that makes this object one of them.
    """

    resource: Resource
    field_selectors: Sequence[str]
    own: Key | None = None
    most: int
    denial: str
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A named object whose content a rule checks, read from the API server: caches have no contents.

    Attributes:
        check: returns findings about the object, None if it does not exist. Runs in a thread.
    """

    resource: Resource
    name: str
    namespace: str
    check: Callable[[Object | None], Sequence[Finding]]


Mutation = Callable[[Write], None]
"""Change `write.new` in place."""
Rule = Callable[[Write], Iterable[Finding]]
Rights = Callable[[Write], Iterable[Right]]
Limits = Callable[[Write], Iterable[Limit]]
Contents = Callable[[Write], Iterable[Content]]
Warnings = Callable[[Write], Iterable[str]]
Labels = Mapping[str, str]
