"""Pages made from memory alone: the list of ManagedResources, recent changes, and one ManagedResource."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode

from agent.resource_manager.common.recent_changes import ObjectChange
from agent.resource_manager.status_page.lister import Lister, SeenObject
from agent.resource_manager.status_page.listing import BY_STATE, Listing, Query
from agent.resource_manager.status_page.rendering import render
from gardener.managed_resource.conditions import is_observed
from gardener.managed_resource.references import listed_in, secret_names
from gardener.overview.hints import hints
from gardener.overview.objects import Health, Live
from gardener.overview.states import ResourceState, StateFilter, message_of, state_of
from gardener.responsibility import DEFAULT_CLASS, EVERY_CLASS, class_of
from kube.objects import Key, Object, finalizers, is_truthy, key, metadata
from process.pages.paging import page_of, paged, span_of, terms_of

# --- the list of ManagedResources


_COLUMNS = (
    ("state", "State", "ascending"),
    ("name", "ManagedResource", "ascending"),
    ("class", "Class", "ascending"),
    ("", "Applied", ""),
    ("", "Healthy", ""),
    ("", "Progressing", ""),
    ("objects", "Objects", "descending"),
    ("changed", "Changed", "descending"),
    ("", "Message", ""),
)


class Column(NamedTuple):
    name: str
    url: str = ""
    sorted: str = ""
    number: bool = False


class Chip(NamedTuple):
    """Number of ManagedResources in a state, and a link to them; without a state, all."""

    state: ResourceState | None
    total: int
    url: str
    is_chosen: bool


def list_page(lister: Lister, listing: Listing, *, now: datetime) -> str:
    query, page = listing.query, listing.page()
    with_class = len(listing.classes) > 1
    caption = span_of(page, "ManagedResource") + (f" of {listing.known:,}" if page.total != listing.known else "")
    if not page.items:
        caption = "There are no ManagedResources." if not listing.known else "No ManagedResource matches."
    return render(
        "list.html",
        lister,
        now=now,
        title="ManagedResources",
        section="/",
        query=query,
        is_set=query != Query(),
        by_state=BY_STATE,
        known=listing.known,
        wanted_class="" if lister.resource_class in {DEFAULT_CLASS, EVERY_CLASS} else lister.resource_class,
        states=[wanted.value for wanted in StateFilter],
        namespaces=listing.offered(listing.namespaces, query.namespace),
        classes=listing.offered(listing.classes, query.resource_class),
        chips=list(_chips(listing)),
        caption=caption,
        columns=list(_columns(query, with_class=with_class)),
        with_class=with_class,
        page=page,
    )


def _chips(listing: Listing) -> Iterator[Chip]:
    query = listing.query
    yield Chip(None, sum(listing.states.values()), query.url(state=""), not query.state)
    for state in ResourceState:
        count, name = listing.states[state], state.value.lower()
        if count or query.state == name:
            # `failed` includes unhealthy ones, so that state has no link of its own.
            wanted = name if name in {each.value for each in StateFilter} else StateFilter.FAILED.value
            yield Chip(state, count, query.url(state=wanted), query.state == name)


def _columns(query: Query, *, with_class: bool) -> Iterator[Column]:
    for order, name, direction in _COLUMNS:
        if order != "class" or with_class:
            url = query.url(order=order) if order else ""
            yield Column(name, url, direction if order and query.order == order else "", number=order == "objects")


# --- recent changes, for all ManagedResources


_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class ChangesQuery:
    text: str = ""
    only_drift: bool = False
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> "ChangesQuery":
        text = parameters.get("q", "").strip()[:_LONGEST_TEXT]
        return cls(text, parameters.get("only") == "drift", page_of(parameters))

    def url(self, page: int) -> str:
        requested = {"q": self.text, "only": "drift" if self.only_drift else "", "page": page if page > 1 else ""}
        given = {name: value for name, value in requested.items() if value}
        return f"/changes?{urlencode(given)}" if given else "/changes"

    def finds(self, changes: Iterable[ObjectChange]) -> list[ObjectChange]:
        terms, found = terms_of(self.text), []
        for change in changes:
            text = f"{change.owner} {change.action} {change.kind} {change.key} {' '.join(change.fields)}".casefold()
            if (change.action.is_repair or not self.only_drift) and all(term in text for term in terms):
                found.append(change)
        return found


def changes_page(lister: Lister, query: ChangesQuery, *, now: datetime) -> str:
    found = query.finds(lister.changes.newest_first())
    page = paged(found, query.page)
    kept = f"The last {lister.changes.limit:,} are kept until this process ends."
    return render(
        "changes.html",
        lister,
        now=now,
        title="Recent changes",
        section="/changes",
        query=query,
        is_set=query != ChangesQuery(),
        caption=f"{span_of(page, 'change')}. {kept}" if found else f"No changes, or none match. {kept}",
        page=page,
    )


# --- one ManagedResource


_OBJECTS = 1000
"""Maximum number of shown objects, and of Secrets."""
_SWITCHES = ("keepObjects", "forceOverwriteLabels", "forceOverwriteAnnotations", "deletePersistentVolumeClaims")


class Property(NamedTuple):
    """A text, or a point in time."""

    name: str
    text: str = ""
    at: str = ""


class Branch(NamedTuple):
    """A Secret, or a label for other objects, and the objects that come from it."""

    identity: str
    objects: Sequence[SeenObject]
    is_counted: bool
    secret: str = ""
    is_missing: bool = False
    label: str = ""


def one_page(lister: Lister, managed_resource: Object, *, now: datetime) -> str:
    name, state = key(managed_resource), state_of(managed_resource)
    seen = lister.objects_of(managed_resource, limit=_OBJECTS)
    conditions: Sequence[Object] = (managed_resource.get("status") or {}).get("conditions") or []
    return render(
        "managed_resource.html",
        lister,
        now=now,
        title=f"{name.namespace}/{name.name}",
        name=name,
        is_ours=lister.is_ours(managed_resource),
        state=state,
        message=message_of(managed_resource) if state in {ResourceState.SUSPENDED, ResourceState.PENDING} else "",
        properties=list(_properties(lister, managed_resource)),
        advice=_advice(managed_resource, seen),
        conditions=sorted(conditions, key=lambda found: found.get("type") or ""),
        branches=list(_branches(lister, managed_resource, seen)),
        not_shown=len(listed_in(managed_resource)) - len(seen),
        what_is_shown=_what_is_shown(lister, managed_resource),
        changes=list(lister.changes.newest_first(owner=name)),
    )


def _properties(lister: Lister, managed_resource: Object) -> Iterator[Property]:
    meta, status = metadata(managed_resource), managed_resource.get("status") or {}
    spec = managed_resource.get("spec") or {}
    class_name = class_of(managed_resource) or DEFAULT_CLASS
    yield Property("Class", class_name if lister.is_ours(managed_resource) else f"{class_name} (of another agent)")
    yield Property("Created", at=meta.get("creationTimestamp") or "")
    if meta.get("deletionTimestamp"):
        yield Property("Deletion requested", at=meta["deletionTimestamp"])
    generation = f"{meta.get('generation') or 0}"
    if not is_observed(managed_resource):
        generation += f", applied is {status.get('observedGeneration') or 0}"
    yield Property("Generation", generation)
    yield Property("Objects", f"{len(listed_in(managed_resource)):,}")
    yield Property("Finalizers", ", ".join(finalizers(managed_resource)) or "none")
    if switches := [name for name in _SWITCHES if is_truthy(str(spec.get(name)))]:
        yield Property("Switched on", ", ".join(switches))


def _advice(managed_resource: Object, seen: Sequence[SeenObject]) -> Sequence[str]:
    # A missing object is not in another cluster here, as it may be for a client with a kubeconfig.
    there = [
        Live(each.reference, None, each.status)
        for each in seen
        if each.status is not None and each.status.health is not Health.MISSING
    ]
    return hints(managed_resource, there)


def _branches(lister: Lister, managed_resource: Object, seen: Sequence[SeenObject]) -> Iterator[Branch]:
    namespace = key(managed_resource).namespace
    knows_secrets = lister.knows_secrets(managed_resource)
    by_secret: dict[str, list[SeenObject]] = {}
    for each in seen:
        by_secret.setdefault(each.secret, []).append(each)
    for position, name in enumerate(list(dict.fromkeys(secret_names(managed_resource)))[:_OBJECTS]):
        is_missing = not lister.has_secret(Key(namespace, name))
        yield Branch(f"secret-{position}", by_secret.pop(name, []), knows_secrets, secret=name, is_missing=is_missing)
    if left := [each for some in by_secret.values() for each in some]:
        label = "In no Secret any more" if knows_secrets else "Objects"
        yield Branch("others", left, is_counted=True, label=label)


def _what_is_shown(lister: Lister, managed_resource: Object) -> str:
    if not lister.is_ours(managed_resource):
        return "It has another class, so the state of its objects is unknown here."
    if not lister.leads:
        return "The leader knows the state of objects, and the Secrets that they come from."
    return "From the watches of the agent. Pods of Deployments are counted; kubectl mr tree shows other dependents."
