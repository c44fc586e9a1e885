"""The list of ManagedResources."""

from datetime import datetime

from agent.managed_resource.conditions import APPLIED, HEALTHY, PROGRESSING
from agent.overview.states import State, Wanted
from agent.status_page.frame import (
    Place,
    column,
    condition_badge,
    document,
    link_to,
    moment,
    pages,
    search_form,
    shortened,
    span_of,
    state_badge,
    table,
)
from agent.status_page.knowledge import Knowledge
from agent.status_page.listing import BY_STATE, Listing, Query, Row
from agent.status_page.markup import Markup, element, joined

_MESSAGE = 240
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


def list_page(knowledge: Knowledge, listing: Listing, *, now: datetime) -> Markup:
    query, page = listing.query, listing.page()
    above = joined(
        element("h1", "ManagedResources"),
        _form(listing),
    )
    with_class = len(listing.classes) > 1
    rows = [_row(row, now, with_class=with_class) for row in page.items]
    caption = span_of(page, "ManagedResource") + (f" of {listing.known:,}" if page.total != listing.known else "")
    if not rows:
        caption = "There are no ManagedResources." if not listing.known else "No ManagedResource fits."
    content = table(caption, _header(query, with_class=with_class), rows, label="ManagedResources")
    links = pages(page, (query.url(page=page.number - 1), query.url(page=page.number + 1)))
    return document(
        Place("ManagedResources", "/"), knowledge, now=now, above=above, live=joined(_chips(listing), content, links)
    )


def _chips(listing: Listing) -> Markup:
    """How many there are in each state, and links to them."""
    query = listing.query
    chips = [("", element("span", "All"), sum(listing.states.values()))]
    for state in State:
        count = listing.states[state]
        if count or query.state == state.value.lower():
            # `failed` takes in what is unhealthy, so that state has no link of its own.
            chips.append((state.value.lower(), state_badge(state), count))
    items = []
    for name, label, count in chips:
        wanted = name if name in {"", *(each.value for each in Wanted)} else Wanted.FAILED.value
        items.append(
            element(
                "li",
                element(
                    "a",
                    label,
                    element("strong", f"{count:,}"),
                    href=query.url(state=wanted),
                    aria_current="true" if query.state == name else None,
                ),
            )
        )
    return element("nav", element("ul", *items, class_="chips"), aria_label="States")


def _form(listing: Listing) -> Markup:
    query = listing.query
    return search_form(
        "/",
        "Search names, messages, Secrets and objects",
        query.text,
        _select("state", "State", query.state, [wanted.value for wanted in Wanted]),
        _select("namespace", "Namespace", query.namespace, listing.offered(listing.namespaces, query.namespace)),
        _select("class", "Class", query.resource_class, listing.offered(listing.classes, query.resource_class)),
        element("input", type="hidden", name="sort", value=query.order) if query.order != BY_STATE else None,
        is_set=query != Query(),
    )


def _select(name: str, label: str, chosen: str, choices: list[str]) -> Markup:
    options = [element("option", "all", value="", selected=not chosen)]
    options += [element("option", choice, value=choice, selected=choice == chosen) for choice in choices]
    return element("div", element("label", label, for_=name), element("select", *options, id=name, name=name))


def _header(query: Query, *, with_class: bool) -> list[Markup]:
    columns = []
    for order, name, direction in _COLUMNS:
        if order == "class" and not with_class:
            continue
        css = "number" if order == "objects" else None
        if not order:
            columns.append(column(name, class_=css))
            continue
        link = element("a", name, href=query.url(order=order))
        columns.append(column(link, class_=css, aria_sort=direction if query.order == order else None))
    return columns


def _row(row: Row, now: datetime, *, with_class: bool) -> Markup:
    return element(
        "tr",
        element("td", state_badge(row.state)),
        element("th", link_to(row.key), scope="row", class_="name"),
        element("td", row.resource_class) if with_class else None,
        element("td", condition_badge(APPLIED, row.applied), class_="plain"),
        element("td", condition_badge(HEALTHY, row.healthy), class_="plain"),
        element("td", condition_badge(PROGRESSING, row.progressing), class_="plain"),
        element("td", row.objects, class_="number"),
        element("td", moment(row.changed or None, now)),
        element("td", element("span", shortened(row.message, _MESSAGE)), class_="words"),
    )
