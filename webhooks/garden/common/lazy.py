"""Attributes that are worked out when they are first read."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - it is used like property
    """As `functools.cached_property`, without the lock that it has until Python 3.12, which costs more than most of
    what rules work out. Not for objects that several threads read.
    """

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self._name = work_out.__name__
        self.__doc__ = work_out.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        # From now on found there: what has no __set__ comes after the attributes of the instance.
        value = instance.__dict__[self._name] = self._work_out(instance)
        return value
