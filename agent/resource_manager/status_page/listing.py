"""Queries for ManagedResources: selection, order and pages."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from gardener.conditions import RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING
from gardener.managed_resource.references import listed_in, secret_names
from gardener.overview.objects import short_name
from gardener.overview.states import (
    WORST_FIRST,
    ResourceState,
    StateFilter,
    brief,
    message_of,
    object_count,
    state_of,
    status_of,
)
from gardener.responsibility import DEFAULT_CLASS, class_of
from kube.objects import Key, Object, key
from process.pages.paging import Page, page_of, paged, terms_of

BY_STATE = "state"
"""Order with problems at the top."""
_LONGEST_TEXT = 200
_CHOICES = 300
"""Number of namespaces and classes that are offered; any other can be requested as well."""


@dataclass(frozen=True, slots=True)
class Row:
    """A ManagedResource in the list."""

    key: Key
    state: ResourceState
    resource_class: str
    applied: str
    healthy: str
    progressing: str
    objects: int
    message: str
    changed: str
    """Time of the last transition of a condition; empty if there was none."""


def row_of(managed_resource: Object) -> Row:
    conditions: Sequence[Object] = (managed_resource.get("status") or {}).get("conditions") or []
    return Row(
        key=key(managed_resource),
        state=state_of(managed_resource),
        resource_class=class_of(managed_resource) or DEFAULT_CLASS,
        applied=status_of(managed_resource, RESOURCES_APPLIED),
        healthy=status_of(managed_resource, RESOURCES_HEALTHY),
        progressing=status_of(managed_resource, RESOURCES_PROGRESSING),
        objects=object_count(managed_resource),
        message=brief(message_of(managed_resource)),
        changed=max((found.get("lastTransitionTime") or "" for found in conditions), default=""),
    )


# --- queries


@dataclass(frozen=True, slots=True)
class Query:
    text: str = ""
    state: str = ""
    namespace: str = ""
    resource_class: str = ""
    order: str = BY_STATE
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> "Query":
        """Return the query; invalid parameters are ignored."""
        state, order = parameters.get("state", ""), parameters.get("sort", "")
        return cls(
            text=parameters.get("q", "").strip()[:_LONGEST_TEXT],
            state=state if state in {wanted.value for wanted in StateFilter} else "",
            namespace=parameters.get("namespace", "").strip()[:_LONGEST_TEXT],
            resource_class=parameters.get("class", "").strip()[:_LONGEST_TEXT],
            order=order if order in _ORDERS else BY_STATE,
            page=page_of(parameters),
        )

    def url(self, **changed: Any) -> str:
        """Return the URL of the query with some changes; any change except of the page leads to the first page."""
        requested = replace(self, **{"page": 1, **changed})
        parameters = {
            "q": requested.text,
            "state": requested.state,
            "namespace": requested.namespace,
            "class": requested.resource_class,
            "sort": requested.order if requested.order != BY_STATE else "",
            "page": requested.page if requested.page > 1 else "",
        }
        given = {name: value for name, value in parameters.items() if value}
        return f"/?{urlencode(given)}" if given else "/"

    @property
    def terms(self) -> Sequence[str]:
        return terms_of(self.text)


def matches(managed_resource: Object, row: Row, terms: Sequence[str]) -> bool:
    """Whether each term is in its name, class or message, or in the name of one of its Secrets or objects."""
    if not terms:
        return True
    text = f"{row.key} {row.state} {row.resource_class} {row.message}".casefold()
    left = [term for term in terms if term not in text]
    if not left:
        return True
    names = "\n".join([*secret_names(managed_resource), *map(short_name, listed_in(managed_resource))]).casefold()
    return all(term in names for term in left)


_ORDERS: Mapping[str, Callable[[Row], Any]] = {
    BY_STATE: lambda row: (WORST_FIRST.index(row.state), row.key),
    "name": lambda row: row.key,
    "class": lambda row: (row.resource_class, row.key),
    "objects": lambda row: (-row.objects, row.key),
    # The latest first; those without a time at the end.
    "changed": lambda row: ([-ord(char) for char in row.changed] or [1], row.key),
}


# --- results


@dataclass(slots=True)
class Listing:
    """Result of a query; fed with all ManagedResources, a portion at a time."""

    query: Query
    states: Counter[ResourceState] = field(default_factory=Counter)
    """Counts of all that match the query regardless of its state."""
    namespaces: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    known: int = 0
    rows: list[Row] = field(default_factory=list)

    def feed(self, managed_resources: Iterable[Object]) -> None:
        query, terms = self.query, self.query.terms
        for managed_resource in managed_resources:
            row = row_of(managed_resource)
            self.known += 1
            self.namespaces.add(row.key.namespace)
            self.classes.add(row.resource_class)
            if query.namespace not in {"", row.key.namespace} or query.resource_class not in {"", row.resource_class}:
                continue
            if not matches(managed_resource, row, terms):
                continue
            self.states[row.state] += 1
            if not query.state or StateFilter(query.state).includes(row.state):
                self.rows.append(row)

    def page(self) -> Page[Row]:
        return paged(sorted(self.rows, key=_ORDERS[self.query.order]), self.query.page)

    def offered(self, names: Iterable[str], chosen: str) -> list[str]:
        """Return the choices of a field, always including the chosen one."""
        return sorted({*sorted(names)[:_CHOICES], *([chosen] if chosen else [])})
