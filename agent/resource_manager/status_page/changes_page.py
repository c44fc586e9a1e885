"""What the agent has done lately, for all ManagedResources."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from agent.resource_manager.common.rules.changes import ObjectChange
from agent.resource_manager.status_page.lister import Lister
from agent.resource_manager.status_page.listing import page_of, paged, terms_of
from agent.resource_manager.status_page.rendering import render, span_of

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
        terms, found = terms_of(self.text), []
        for change in changes:
            text = f"{change.owner} {change.action} {change.kind} {change.key} {' '.join(change.fields)}".casefold()
            if (change.action.is_repair or not self.only_drift) and all(term in text for term in terms):
                found.append(change)
        return found


def changes_page(lister: Lister, query: ChangesQuery, *, now: datetime) -> str:
    found = query.finds(lister.changes.newest_first())
    page = paged(found, query.page)
    kept = f"The last {lister.changes.limit:,} are kept, as long as this process lives."
    return render(
        "changes.html",
        lister,
        now=now,
        title="Recent changes",
        section="/changes",
        query=query,
        is_set=query != ChangesQuery(),
        caption=f"{span_of(page, 'change')}. {kept}" if found else f"Nothing was done, or nothing fits. {kept}",
        page=page,
    )
