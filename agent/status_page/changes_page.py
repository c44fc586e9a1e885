"""What the agent has done lately: for all ManagedResources, or for one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from agent.changes import Action, ObjectChange
from agent.status_page.frame import (
    Place,
    badge,
    column,
    document,
    link_to,
    moment,
    pages,
    search_form,
    span_of,
    table,
)
from agent.status_page.knowledge import Knowledge
from agent.status_page.listing import page_of, paged, terms_of
from agent.status_page.markup import Child, Markup, element, joined

_ACTIONS: Mapping[Action, tuple[str, str]] = {
    Action.CREATED: ("+", "good"),
    Action.CHANGED: ("↻", "busy"),
    Action.PUT_RIGHT: ("!", "warn"),
    Action.MADE_AGAIN: ("!", "warn"),
    Action.DELETED: ("−", "dim"),
}
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
        asked = {"q": self.text, "only": "drift" if self.only_drift else "", "page": page if page > 1 else ""}
        given = {name: value for name, value in asked.items() if value}
        return f"/changes?{urlencode(given)}" if given else "/changes"

    def finds(self, changes: Iterable[ObjectChange]) -> list[ObjectChange]:
        terms = terms_of(self.text)
        return [each for each in changes if self._wants(each) and _matches(each, terms)]

    def _wants(self, change: ObjectChange) -> bool:
        return change.action.is_repair or not self.only_drift


def _matches(change: ObjectChange, terms: Sequence[str]) -> bool:
    told = f"{change.owner} {change.action} {change.kind} {change.key} {' '.join(change.fields)}".casefold()
    return all(term in told for term in terms)


def changes_page(knowledge: Knowledge, query: ChangesQuery, *, now: datetime) -> Markup:
    found = query.finds(knowledge.changes.newest_first())
    page = paged(found, query.page)
    above = joined(element("h1", "Recent changes and drift"), _form(query))
    kept = f"The last {knowledge.changes.limit:,} are kept, as long as this process lives."
    caption = f"{span_of(page, 'change')}. {kept}" if found else f"Nothing was done, or nothing fits. {kept}"
    live = joined(
        changes_table(page.items, caption, now, with_owner=True),
        pages(page, (query.url(page.number - 1), query.url(page.number + 1))),
    )
    return document(Place("Recent changes", "/changes"), knowledge, now=now, above=above, live=live)


def _form(query: ChangesQuery) -> Markup:
    drift = element("input", type="checkbox", name="only", value="drift", checked=query.only_drift)
    drifted = element("label", drift, "Only drift that was put right", class_="check")
    label = "Search ManagedResources, objects and fields"
    return search_form("/changes", label, query.text, drifted, is_set=query != ChangesQuery())


def changes_table(changes: Sequence[ObjectChange], caption: Child, now: datetime, *, with_owner: bool) -> Markup:
    names = ("When", *(("ManagedResource",) if with_owner else ()), "What", "Object", "Fields")
    rows = [_row(change, now, with_owner=with_owner) for change in changes]
    return table(caption, [column(name) for name in names], rows, label="Changes")


def _row(change: ObjectChange, now: datetime, *, with_owner: bool) -> Markup:
    fields = [element("li", element("code", path)) for path in change.fields]
    if change.more_fields:
        fields.append(element("li", f"and {change.more_fields} more", class_="quiet"))
    return element(
        "tr",
        element("td", moment(datetime.fromtimestamp(change.at, UTC), now)),
        element("td", link_to(change.owner)) if with_owner else None,
        element("td", badge(change.action.value, *_ACTIONS[change.action])),
        element("th", element("span", f"{change.kind} ", class_="quiet"), str(change.key), scope="row"),
        element("td", element("ul", *fields) if fields else element("span", "–", class_="quiet")),
    )
