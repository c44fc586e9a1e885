"""Rows of the list: an object in one word, and the message that explains it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from gardener import keys
from gardener.api.garden import SEEDS, SHOOTS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.garden.shoots import FAILED, SUCCEEDED, last_operation
from gardener.operations import ERROR
from gardener.overview.states import WORST_FIRST, ResourceState, brief, message_of, state_of
from kube.objects import Key, Object, annotations, is_deleting, is_truthy, key, mappings, metadata, text
from kube.paths import at
from kube.resources import Resource
from kubectl.garden import overview
from kubectl.garden.overview import Rank
from kubectl.garden.why.finding import one_line
from kubectl.style import shortened
from process.pages.paging import Page, page_of, paged, terms_of

KINDS: Sequence[Resource] = (SHOOTS, SEEDS, MANAGED_RESOURCES)

_OF_RANK = {
    Rank.FAILED: ResourceState.FAILED,
    Rank.ERROR: ResourceState.FAILED,
    Rank.UNCONFIRMED: ResourceState.DELETING,
    Rank.UNHEALTHY: ResourceState.UNHEALTHY,
    Rank.WAITING: ResourceState.PENDING,
    Rank.WORKING: ResourceState.PROGRESSING,
    Rank.HEALTHY: ResourceState.READY,
    Rank.HIBERNATED: ResourceState.SUSPENDED,
}
_OF_CONDITION = {"True": ResourceState.READY, "False": ResourceState.UNHEALTHY}
_LONGEST_TEXT = 200
_LONGEST_MESSAGE = 4000


@dataclass(frozen=True, slots=True)
class Row:
    cluster: str
    """Name of the cluster: empty for the garden, else that of a Seed."""
    resource: Resource
    key: Key
    state: ResourceState
    message: str
    """Message; a long one lacks its middle, since a garden has many rows."""
    changed: str
    """Time of the last change of a condition or of the operation; empty if there was none."""


def row_of(cluster: str, resource: Resource, obj: Object) -> Row:
    state, message = _state_and_message(resource, obj)
    found = [each for field in ("conditions", "constraints") for each in mappings(at(obj, "status", field))]
    times = [text(each.get("lastTransitionTime")) for each in found]
    times += [text(last_operation(obj).get("lastUpdateTime")), text(metadata(obj).get("deletionTimestamp"))]
    return Row(cluster, resource, key(obj), state, shortened(message, _LONGEST_MESSAGE), max(times))


def _state_and_message(resource: Resource, obj: Object) -> tuple[ResourceState, str]:
    if resource == MANAGED_RESOURCES:
        return state_of(obj), brief(message_of(obj))
    return _of_shoot(obj) if resource == SHOOTS else _of_seed(obj)


def _of_shoot(shoot: Object) -> tuple[ResourceState, str]:
    found = overview.state_of(shoot)
    if found.rank >= Rank.WAITING and is_truthy(annotations(shoot).get(keys.SHOOT_IGNORE)):
        return ResourceState.SUSPENDED, f"ignored because of the annotation {keys.SHOOT_IGNORE}"
    if found.rank is Rank.WORKING and is_deleting(shoot):
        return ResourceState.DELETING, found.message
    return _OF_RANK[found.rank], found.message or ("hibernated" if found.rank is Rank.HIBERNATED else "")


def _of_seed(seed: Object) -> tuple[ResourceState, str]:
    last = last_operation(seed)
    progress = " ".join(filter(None, (text(last.get("type")), text(last.get("state")).lower())))
    description = f"{progress}: {one_line(last.get('description'))}" if last else ""
    if last.get("state") in {FAILED, ERROR}:
        return ResourceState.FAILED, description
    if is_deleting(seed):
        return ResourceState.DELETING, description
    state, message = _worst_condition(seed)
    if state is ResourceState.UNHEALTHY:
        return state, message
    if not last:
        return ResourceState.PENDING, "no gardenlet has processed it yet"
    if last.get("state") != SUCCEEDED:
        return ResourceState.PROGRESSING, description
    return state, message


def _worst_condition(obj: Object) -> tuple[ResourceState, str]:
    """State by its conditions; a condition that is neither True nor False, such as Progressing, is in progress."""
    found = [
        (_OF_CONDITION.get(text(each.get("status")), ResourceState.PROGRESSING), each)
        for each in mappings(at(obj, "status", "conditions"))
    ]
    state, worst = min(found, key=lambda each: WORST_FIRST.index(each[0]), default=(ResourceState.READY, {}))
    if state is ResourceState.READY:
        return state, ""
    parts = (worst.get("type"), worst.get("reason"), worst.get("message"))
    return state, ": ".join(filter(None, map(one_line, parts)))


# --- queries


@dataclass(frozen=True, slots=True)
class Query:
    text: str = ""
    kind: str = ""
    state: str = ""
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> "Query":
        """Return the query; invalid parameters are ignored."""
        kind, state = parameters.get("kind", ""), parameters.get("state", "")
        return cls(
            text=parameters.get("q", "").strip()[:_LONGEST_TEXT],
            kind=kind if kind in {each.kind for each in KINDS} else "",
            state=state if state in set(ResourceState) else "",
            page=page_of(parameters),
        )

    def link(self, *, kind: str | None = None, state: str | None = None, page: int = 1) -> str:
        """Return the query string with some changes."""
        requested = {
            "q": self.text,
            "kind": self.kind if kind is None else kind,
            "state": self.state if state is None else state,
            "page": str(page) if page > 1 else "",
        }
        return f"?{urlencode({name: value for name, value in requested.items() if value})}"


@dataclass(frozen=True, slots=True)
class Listing:
    """Result of a query.

    Attributes:
        page: the rows that match, problems first.
        states: counts of all that match the query regardless of its state.
        kinds: counts of all that match the query regardless of its kind.
    """

    page: Page[Row]
    states: Mapping[ResourceState, int]
    kinds: Mapping[str, int]


def listing_of(rows: Iterable[Row], query: Query) -> Listing:
    terms = terms_of(query.text)
    found = [row for row in rows if _matches(row, terms)]
    of_kind = [row for row in found if query.kind in {"", row.resource.kind}]
    of_state = [row for row in found if query.state in {"", row.state.value}]
    chosen = [row for row in of_kind if query.state in {"", row.state.value}]
    chosen.sort(key=lambda row: (WORST_FIRST.index(row.state), KINDS.index(row.resource), row.cluster, row.key))
    return Listing(
        paged(chosen, query.page),
        Counter(row.state for row in of_kind),
        Counter(row.resource.kind for row in of_state),
    )


def _matches(row: Row, terms: Sequence[str]) -> bool:
    words = f"{row.resource.kind} {row.cluster} {row.key} {row.state} {row.message}".casefold()
    return all(term in words for term in terms)
