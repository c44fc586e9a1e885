"""What follows from objects of the caches alone, worked out once for each of them and not with every request.

Such objects are never changed, only replaced, so their identity tells whether it is still the same one.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from kube.objects import Object

T = TypeVar("T")


class Derived(Generic[T]):
    """Args: most: results that are kept, with their objects; those that were not asked for longest go."""

    def __init__(self, derive: Callable[[Object], T], *, most: int) -> None:
        self._derive = derive
        self._most = most
        self._known: OrderedDict[int, tuple[Object, T]] = OrderedDict()

    def __call__(self, obj: Object) -> T:
        """Args: obj: of the caches, or part of such an object."""
        known = self._known.get(id(obj))
        if known is not None:  # the object is kept, so nothing else has its identity
            self._known.move_to_end(id(obj))
            return known[1]
        result = self._derive(obj)
        self._known[id(obj)] = obj, result
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return result
