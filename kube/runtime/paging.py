"""Bounds of a list that comes in pages.

An aggregated API server may answer with another page for ever. A list of one of its kinds ends with an error that names
the kind; lists of other kinds continue.
"""

import time
from collections.abc import Callable

from kube.errors import NotUnderstood
from kube.objects import Object, metadata, text
from kube.resources import BUILT_IN_GROUPS, Resource

MOST_PAGES = 20_000
MOST_OBJECTS = 2_000_000
"""Limit for a kind of Kubernetes."""
MOST_CUSTOM_OBJECTS = 100_000
"""Limit for any other kind."""
MOST_BYTES = 64 << 20
"""Limit for all pages of a kind that is not built in and whose lists may not be of any size, in bytes, decompressed."""
MOST_EMPTY_PAGES = 3
"""Limit of consecutive pages without objects that are not the last."""
MOST_SECONDS = 600.0
LONGEST_TOKEN = 16 << 10
"""Limit for the token for the next page, which is sent as part of a URL, in characters."""


class Paging:
    """Pages of one list, in their order."""

    def __init__(self, resource: Resource, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._resource, self._clock = resource, clock
        self._began = clock()
        self._most = MOST_OBJECTS if resource.group in BUILT_IN_GROUPS else MOST_CUSTOM_OBJECTS
        self._has_most_bytes = resource.group not in BUILT_IN_GROUPS and not resource.any_size
        self._pages = self._objects = self._empty = self._bytes = 0
        self._token = ""

    def received(self, size: int) -> None:
        """Count a page of `size` bytes before it is decoded. Raises NotUnderstood: together they are too many."""
        self._bytes += size
        if self._has_most_bytes and self._bytes > MOST_BYTES:
            raise self._endless(f"more than {MOST_BYTES} bytes")

    def following(self, page: Object) -> str:
        """Return the token for the next page, empty after the last one. Raises NotUnderstood: a bound is exceeded."""
        token, items = text(metadata(page).get("continue")), len(page["items"])
        self._pages += 1
        self._objects += items
        self._empty = 0 if items else self._empty + 1
        if self._objects > self._most:
            raise self._endless(f"more than {self._most} objects")
        if not token:
            return ""
        problems = {
            "a page that continues with itself": token == self._token,
            "a token for the next page that is too long": len(token) > LONGEST_TOKEN,
            "several pages without objects": self._empty >= MOST_EMPTY_PAGES,
            f"more than {MOST_PAGES} pages": self._pages >= MOST_PAGES,
            f"pages for more than {MOST_SECONDS:g} s": self._clock() - self._began > MOST_SECONDS,
        }
        for problem, is_so in problems.items():
            if is_so:
                raise self._endless(problem)
        self._token = token
        return token

    def _endless(self, problem: str) -> NotUnderstood:
        return NotUnderstood(f"the list of {self._resource} has {problem}: check the API server of this kind")
