"""Pages of long tables, and their query parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

PAGE = 100
_TERMS = 8


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: Sequence[T]
    number: int
    last: int
    first_item: int
    """Counted from 1; 0 if there is none."""
    total: int


def paged(items: Sequence[T], number: int) -> Page[T]:
    """Return the page of this number, or the last one."""
    last = max(-(-len(items) // PAGE), 1)
    number = min(number, last)
    start = (number - 1) * PAGE
    return Page(items[start : start + PAGE], number, last, start + 1 if items else 0, len(items))


def span_of(page: Page[Any], noun: str) -> str:
    """Return the range of a page, such as `201 to 400 of 1,000 changes`."""
    if page.last == 1:
        return f"{page.total:,} {noun}" + ("" if page.total == 1 else "s")
    return f"{page.first_item:,} to {page.first_item + len(page.items) - 1:,} of {page.total:,} {noun}s"


def page_of(parameters: Mapping[str, str]) -> int:
    """Requested number of a page, from 1; invalid ones are ignored."""
    text = parameters.get("page", "")
    return max(int(text), 1) if text.isascii() and text.isdigit() and len(text) < 7 else 1


def terms_of(text: str) -> Sequence[str]:
    """Words of a search, of which all must match."""
    return text.casefold().split()[:_TERMS]
