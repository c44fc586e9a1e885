"""The list of ManagedResources."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from agent.resource_manager.status_page.lister import Lister
from agent.resource_manager.status_page.listing import BY_STATE, Listing, Query
from agent.resource_manager.status_page.rendering import render, span_of
from gardener.overview.states import ResourceState, StateFilter
from gardener.responsibility import DEFAULT_CLASS, EVERY_CLASS

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
    """How many there are in a state, and a link to them; without a state: all."""

    state: ResourceState | None
    total: int
    url: str
    is_chosen: bool


def list_page(lister: Lister, listing: Listing, *, now: datetime) -> str:
    query, page = listing.query, listing.page()
    with_class = len(listing.classes) > 1
    caption = span_of(page, "ManagedResource") + (f" of {listing.known:,}" if page.total != listing.known else "")
    if not page.items:
        caption = "There are no ManagedResources." if not listing.known else "No ManagedResource fits."
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
            # `failed` takes in what is unhealthy, so that state has no link of its own.
            wanted = name if name in {each.value for each in StateFilter} else StateFilter.FAILED.value
            yield Chip(state, count, query.url(state=wanted), query.state == name)


def _columns(query: Query, *, with_class: bool) -> Iterator[Column]:
    for order, name, direction in _COLUMNS:
        if order != "class" or with_class:
            url = query.url(order=order) if order else ""
            yield Column(name, url, direction if order and query.order == order else "", number=order == "objects")
