"""What all pages have in common, and the pieces they are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from agent.managed_resource.conditions import PROGRESSING
from agent.overview.objects import Health
from agent.overview.states import State
from agent.service_events import short_duration
from agent.status_page.assets import ICON_PATH, SCRIPT_PATH, STYLE_PATH
from agent.status_page.knowledge import Knowledge
from agent.status_page.listing import Page
from agent.status_page.markup import Child, Markup, element, joined
from kube.objects import Key, format_time, parse_time
from process.version import COMPONENT

_LONGEST = 16_384
"""Characters of a message that are shown."""

_STATES: Mapping[State, tuple[str, str]] = {
    State.READY: ("✓", "good"),
    State.PROGRESSING: ("↻", "busy"),
    State.UNHEALTHY: ("!", "bad"),
    State.FAILED: ("✕", "bad"),
    State.SUSPENDED: ("‖", "warn"),
    State.DELETING: ("−", "warn"),
    State.PENDING: ("?", "dim"),
}
_HEALTH: Mapping[Health, tuple[str, str]] = {
    Health.HEALTHY: ("✓", "good"),
    Health.PROGRESSING: ("↻", "busy"),
    Health.UNHEALTHY: ("!", "bad"),
    Health.MISSING: ("✕", "bad"),
    Health.DELETING: ("−", "warn"),
    Health.UNKNOWN: ("?", "dim"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is: its title, and the entry of the navigation that it belongs to."""

    title: str
    section: str


_SECTIONS = (("/", "ManagedResources"), ("/changes", "Recent changes"))


def document(place: Place, knowledge: Knowledge, *, now: datetime, above: Child, live: Child) -> Markup:
    """A whole page; what is `live` is put in anew when the page refreshes itself."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{place.title} · Resource manager"),
        element("link", rel="icon", type="image/svg+xml", href=ICON_PATH),
        element("link", rel="stylesheet", href=STYLE_PATH),
        element("script", src=SCRIPT_PATH, defer=True),
    )
    main = element(
        "main",
        above,
        element("p", id="said", role="status", class_="quiet"),
        element("div", _notices(knowledge), live, id="live", data_now=int(now.timestamp())),
        id="content",
        tabindex=-1,
    )
    footer = element(
        "footer",
        "Made ",
        element("time", format_time(now), datetime=format_time(now)),
        f" by {COMPONENT} from what it holds in memory; nothing was asked of an API server. Read only.",
    )
    skip = element("a", "Skip to content", href="#content", class_="skip")
    body = element("body", skip, _header(place, knowledge), main, footer)
    return joined(Markup("<!DOCTYPE html>\n"), element("html", head, body, lang="en"))


def _header(place: Place, knowledge: Knowledge) -> Markup:
    entries = [
        element("li", element("a", name, href=path, aria_current="page" if path == place.section else None))
        for path, name in _SECTIONS
    ]
    role = ("leader", "good") if knowledge.leads else ("standby", "dim")
    return element(
        "header",
        element("span", element("img", src=ICON_PATH, alt=""), "Resource manager", class_="brand"),
        element("nav", element("ul", *entries), aria_label="Pages"),
        element(
            "div",
            element("span", f"This replica: {role[0]}", class_=f"badge {role[1]}"),
            element("button", "Refresh every 10 s", type="button", id="refresh", aria_pressed="false", hidden=True),
            class_="tools",
        ),
    )


def _notices(knowledge: Knowledge) -> Markup:
    notices: list[str] = []
    if not knowledge.is_complete:
        notices.append("The first list of ManagedResources is not complete yet: there are more than are shown.")
    if not knowledge.leads:
        where = f", the holder of Lease {knowledge.lease}" if knowledge.lease else ""
        notices.append(
            "This replica stands by. It knows ManagedResources and their conditions; how single objects fare, and "
            f"what was changed lately, only the leader knows{where}."
        )
    return joined(*(element("p", notice, class_="note") for notice in notices))


# --- pieces


def badge(word: str, symbol: str, color: str) -> Markup:
    return element("span", element("span", symbol, aria_hidden="true"), word, class_=f"badge {color}")


def state_badge(state: State) -> Markup:
    return badge(state.value, *_STATES[state])


def health_badge(health: Health) -> Markup:
    return badge(health.value, *_HEALTH[health])


def condition_badge(kind: str, status: str) -> Markup:
    """The status of a condition."""
    if not status:
        return element("span", "–", class_="quiet")
    if status == ("False" if kind == PROGRESSING else "True"):
        return badge(status, "✓", "good")
    is_bad = kind != PROGRESSING and status == "False"
    return badge(status, *(("✕", "bad") if is_bad else ("↻", "busy")))


def moment(at: datetime | str | None, now: datetime) -> Markup:
    """How long ago it was, and exactly when for who points at it."""
    try:
        when = parse_time(at) if isinstance(at, str) else at
    except ValueError:
        when = None
    if when is None:
        return element("span", "–", class_="quiet")
    age = short_duration(max((now - when).total_seconds(), 0))
    told = format_time(when)
    return element("time", age, datetime=told, title=told, data_at=int(when.timestamp()))


def shortened(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def path_of(name: Key) -> str:
    return f"/managedresources/{quote(name.namespace, safe='')}/{quote(name.name, safe='')}"


def link_to(name: Key) -> Markup:
    """To the page of a ManagedResource."""
    namespace = element("span", f"{name.namespace}/", class_="quiet")
    return element("a", namespace, element("wbr"), name.name, href=path_of(name))


def table(caption: Child, header: list[Markup], rows: list[Markup], *, label: str) -> Markup:
    """Args: label: of the region that can be scrolled, for those who don't see it."""
    content = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *header)),
        element("tbody", *rows),
    )
    identity = label.lower()
    return element("div", content, class_="sheet scrolled", role="region", aria_label=label, tabindex=0, id=identity)


def column(name: Child, **attributes: str | None) -> Markup:
    return element("th", name, scope="col", **attributes)


def search_form(action: str, label: str, text: str, *more: Child, is_set: bool) -> Markup:
    """Args: text: what is searched; more: what else can be chosen; is_set: whether there is something to reset."""
    search = element(
        "div",
        element("label", label, for_="q"),
        element("input", type="search", id="q", name="q", value=text, autocomplete="off", data_filters=True),
        class_="wide",
    )
    return element(
        "form",
        search,
        *more,
        element("button", "Search", type="submit"),
        element("a", "Reset", href=action) if is_set else None,
        role="search",
        method="get",
        action=action,
        class_="sheet padded",
    )


def pages(page: Page[Any], urls: tuple[str, str]) -> Markup | None:
    """Links to the page before and after this one."""
    if page.last == 1:
        return None
    before, after = urls
    return element(
        "nav",
        element("a", "← Back", href=before, rel="prev") if page.number > 1 else None,
        element("span", f"Page {page.number} of {page.last}"),
        element("a", "Next →", href=after, rel="next") if page.number < page.last else None,
        class_="pages",
        aria_label="Pages of the table",
    )


def span_of(page: Page[Any], noun: str) -> str:
    """`201 to 400 of 1,000 changes`."""
    if page.last == 1:
        return f"{page.total:,} {noun}" + ("" if page.total == 1 else "s")
    return f"{page.first_item:,} to {page.first_item + len(page.items) - 1:,} of {page.total:,} {noun}s"
