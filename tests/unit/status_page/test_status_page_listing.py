"""Which ManagedResources a query finds, in which order, and on which page."""

from typing import Any

import pytest

from agent.resource_manager.status_page.listing import Listing, Query
from gardener.overview.states import ResourceState
from kit.objects import conditions, managed_resource, reference
from kube.objects import Object
from process.pages.paging import PAGE, paged


def managed(
    name: str, *, state: ResourceState = ResourceState.READY, resource_class: str = "", changed: str = "", **spec: Any
) -> Object:
    statuses = {"applied": str(state is not ResourceState.FAILED), "healthy": str(state is not ResourceState.UNHEALTHY)}
    reported = conditions(**statuses, reason="R", message=f"{name} reported", lastTransitionTime=changed)
    spec = {"class": resource_class, **spec}
    status = {"observedGeneration": 1, "resources": spec.get("resources", [])}
    return managed_resource(name, generation=1, spec=spec, conditions=reported, status=status)


EVERYTHING = [
    managed("b/web", changed="2026-01-01T00:00:00Z", secretRefs=[{"name": "web-manifests"}]),
    managed("a/dns", state=ResourceState.FAILED, resource_class="seed", changed="2026-01-03T00:00:00Z"),
    managed("a/api", state=ResourceState.UNHEALTHY, changed="2026-01-02T00:00:00Z"),
    managed("c/db", resources=[reference("apps/v1 StatefulSet", "c/etcd")]),
]


def listing(**parameters: str) -> Listing:
    found = Listing(Query.of(parameters))
    found.feed(EVERYTHING[:2])
    found.feed(EVERYTHING[2:])
    return found


def names(**parameters: str) -> list[str]:
    return [str(row.key) for row in listing(**parameters).page().items]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, ["a/dns", "a/api", "b/web", "c/db"]),
        ({"sort": "name"}, ["a/api", "a/dns", "b/web", "c/db"]),
        ({"sort": "changed"}, ["a/dns", "a/api", "b/web", "c/db"]),
        ({"sort": "objects"}, ["c/db", "a/api", "a/dns", "b/web"]),
        ({"sort": "class"}, ["a/api", "b/web", "c/db", "a/dns"]),
        ({"sort": "nonsense"}, ["a/dns", "a/api", "b/web", "c/db"]),
        ({"state": "ready"}, ["b/web", "c/db"]),
        ({"state": "failed"}, ["a/dns", "a/api"]),
        ({"state": "nonsense"}, ["a/dns", "a/api", "b/web", "c/db"]),
        ({"namespace": "a"}, ["a/dns", "a/api"]),
        ({"class": "seed"}, ["a/dns"]),
        ({"class": "resources", "state": "failed"}, ["a/api"]),
        ({"q": "DNS"}, ["a/dns"]),
        ({"q": "  a/  reported "}, ["a/dns", "a/api"]),
        ({"q": "web-manifests"}, ["b/web"]),
        ({"q": "statefulset/c/etcd ready"}, ["c/db"]),
        ({"q": "a/api a/dns"}, []),
        ({"page": "99"}, ["a/dns", "a/api", "b/web", "c/db"]),
    ],
    ids=str,
)
def test_queries_search_filter_and_sort(parameters: dict[str, str], expected: list[str]) -> None:
    assert names(**parameters) == expected


def test_states_are_counted_whatever_state_is_requested() -> None:
    found = listing(state="ready", namespace="a")
    assert found.states == {ResourceState.FAILED: 1, ResourceState.UNHEALTHY: 1}
    assert (found.known, found.rows) == (4, [])


@pytest.mark.parametrize("page", ["", "0", "-1", "x", "²", "1e3", "9999999999"])
def test_a_page_that_makes_no_sense_is_the_first(page: str) -> None:
    assert Query.of({"page": page}).page == 1


def test_the_address_of_a_query_leads_to_the_same_query() -> None:
    query = Query.of({"q": "a&b=<c>", "state": "failed", "namespace": "n s", "class": "x", "sort": "name", "page": "3"})
    assert query.url(page=3) == "/?q=a%26b%3D%3Cc%3E&state=failed&namespace=n+s&class=x&sort=name&page=3"
    assert query.url(state="") == "/?q=a%26b%3D%3Cc%3E&namespace=n+s&class=x&sort=name"
    assert Query().url() == "/"


@pytest.mark.parametrize(
    ("total", "requested", "number", "last", "first_item", "shown"),
    [
        (0, 1, 1, 1, 0, 0),
        (1, 1, 1, 1, 1, 1),
        (PAGE, 2, 1, 1, 1, PAGE),
        (PAGE + 1, 2, 2, 2, PAGE + 1, 1),
        (5000, 7, 7, 50, 601, 100),
        (5000, 51, 50, 50, 4901, 100),
    ],
)
def test_pages_are_bounded(total: int, requested: int, number: int, last: int, first_item: int, shown: int) -> None:
    page = paged(range(total), requested)
    assert (page.number, page.last, page.first_item) == (number, last, first_item)
    assert (len(page.items), page.total) == (shown, total)


def test_choices_are_bounded_and_have_the_chosen_one() -> None:
    offered = Listing(Query()).offered({f"n{number:04}" for number in range(5000)}, "n4999")
    assert len(offered) == 301
    assert offered[-1] == "n4999"
