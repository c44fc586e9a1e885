"""Lists that never end are given up."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from kube.errors import NotUnderstood
from kube.objects import Object
from kube.resources import CONFIG_MAPS, Resource
from kube.runtime.paging import LONGEST_TOKEN, MOST_CUSTOM_OBJECTS, MOST_EMPTY_PAGES, MOST_SECONDS, Paging

THINGS = Resource("example.com", "v1", "Thing", "things", True)


def page(token: str, items: int = 1) -> Object:
    return {"metadata": {"continue": token}, "items": [{}] * items}


def read(paging: Paging, pages: Iterator[Object]) -> int:
    for number, each in enumerate(pages, 1):
        if not paging.following(each):
            return number
    raise AssertionError("it ended without a last page")


@pytest.mark.parametrize(
    ("make", "problem", "most"),
    [
        (lambda number: page("x"), "continues with itself", 2),
        (lambda number: page(str(number), 0), "without objects", MOST_EMPTY_PAGES),
        (lambda number: page(str(number)), "more than 20000 pages", 20_000),
        (lambda number: page(str(number), 500), "more than 100000 objects", MOST_CUSTOM_OBJECTS // 500 + 1),
        (lambda number: page("x" * (LONGEST_TOKEN + 1)), "too long", 1),
    ],
)
def test_an_endless_list_is_given_up(make: Callable[[int], Object], problem: str, most: int) -> None:
    numbers = count()
    with pytest.raises(NotUnderstood, match=problem):
        read(Paging(THINGS), (make(next(numbers)) for _ in range(most)))
    assert next(numbers) == most


def test_a_list_may_not_take_longer_than_its_time() -> None:
    now = 0.0
    paging = Paging(THINGS, clock=lambda: now)
    assert paging.following(page("a")) == "a"
    now = MOST_SECONDS + 1
    with pytest.raises(NotUnderstood, match="for more than 600 s"):
        paging.following(page("b"))


def test_a_large_list_of_a_kind_of_kubernetes_is_read_to_its_end() -> None:
    pages = (page(str(number) if number < 1000 else "", 500) for number in range(1, 1001))
    assert read(Paging(CONFIG_MAPS), pages) == 1000
