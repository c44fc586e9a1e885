"""What follows from objects of the caches alone, worked out once for each of them and not with every request.

Such objects are never changed, only replaced, so their identity tells whether it is still the same one.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from kube.objects import Object

T = TypeVar("T")


class Derived(Generic[T]):
    """Args: most: results that are kept, with their objects; those that were not asked for longest go."""

    def __init__(self, derive: Callable[..., T], *, most: int) -> None:
        self._derive = derive
        self._most = most
        self._known: OrderedDict[tuple[int, ...], tuple[tuple[Object, ...], T]] = OrderedDict()

    def __call__(self, *objects: Object) -> T:
        """Args: objects: of the caches, or parts of such objects; what is derived takes them as its arguments."""
        key = tuple(map(id, objects))
        known = self._known.get(key)
        if known is not None:  # the objects are kept, so nothing else has their identities
            with contextlib.suppress(KeyError):  # a review beside the event loop may be at work here, too
                self._known.move_to_end(key)
            return known[1]
        result = self._derive(*objects)
        self._known[key] = objects, result
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return result
