"""Changes of one object that affect many others.

The first change is passed on at once. If it affects many objects, they are passed on in pieces, between which other
tasks on the event loop can run, followed by a rest in proportion: all changes meanwhile are one. So an object that
changes all the time, and to which thousands refer, costs no more than one that changes now and then, and delays no
watch.

If the state of the object determines the affected ones, as with labels that others select, the states in between count,
too: of A, B, A, those affected by B may have seen it. Few states are kept; after more, all others are considered
affected.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

from kube.objects import Key

S = TypeVar("S", bound=Hashable)
T = TypeVar("T")

FEW = 10
"""Number of keys that are passed on at once, without a rest."""
_PIECE = 50
_REST_SECONDS = 0.005
"""Rest for each key."""
LONGEST_REST = 5.0
_PAUSE = 3
"""Length of a pause, as a multiple of the time for the piece before."""
_SEARCHED_SECONDS, _REST_AFTER_SEARCH = 0.001, 20
"""A longer search for keys is followed by a rest that is longer by this factor, even if it finds few."""
MOST_STATES = 10


class Changes(Generic[T]):
    """Changes of a subject since it was last passed on. Attributes: initial: whether all are."""

    def __init__(self) -> None:
        self.initial = True
        self.are_many = False
        """Whether there were more states than are kept."""
        self._states: list[T | None] = []

    def add(self, *states: T | None, initial: bool) -> None:
        """Add states. Args: states: before and after; None: it did not exist."""
        self.initial &= initial
        for state in states:
            if state not in self._states:
                self.are_many |= len(self._states) == MOST_STATES
                self._states += [state] * (not self.are_many)

    def states(self) -> Iterator[T]:
        """Kept states."""
        return (state for state in self._states if state is not None)

    def any(self, test: Callable[[T], bool]) -> bool:
        """Whether a state may have passed the test."""
        return self.are_many or any(test(state) for state in self.states())

    def differ(self, part: Callable[[T | None], object]) -> bool:
        """Whether a part may have changed."""
        parts = [part(state) for state in self._states]
        return self.are_many or any(each != parts[0] for each in parts)


class FanOut(Generic[S, T]):
    """Args: keys: of all objects that a subject affects now. handle: called with each, and whether it is initial."""

    def __init__(
        self,
        keys: Callable[[S, Changes[T]], Iterable[Key]],
        handle: Callable[[Key, bool], None],
        *,
        now: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._keys = keys
        self._handle = handle
        self._now = now
        self._call_later = call_later or _call_later
        self._resting: dict[S, float] = {}
        """End of the rest, by subject; only if it affects many, or the search took long."""
        self._waiting: dict[S, Changes[T]] = {}
        self._passing: OrderedDict[S, tuple[Iterator[Key], bool]] = OrderedDict()
        self._paused_until = 0.0
        """Earliest time for the next piece."""
        self._next = math.inf
        """Time at which `_go_on` is called."""

    def add(self, subject: S, *states: T | None, initial: bool = False) -> None:
        """Add a change of a subject. Args: states: before and after, where they count."""
        self._waiting.setdefault(subject, Changes()).add(*states, initial=initial)
        if self._is_due(subject, self._now()):
            self._begin(subject)
        if subject in self._passing:
            self._go_on_at(self._paused_until)
        elif subject in self._waiting:
            self._go_on_at(self._resting[subject])

    def _begin(self, subject: S) -> None:
        changes, began = self._waiting.pop(subject), self._now()
        keys = list(self._keys(subject, changes))
        took, are_many = self._now() - began, len(keys) > FEW
        rest = max(_REST_SECONDS * len(keys) * are_many, _REST_AFTER_SEARCH * took * (took > _SEARCHED_SECONDS))
        if rest:
            self._resting[subject] = self._now() + min(rest, LONGEST_REST)
        else:
            self._resting.pop(subject, None)
        if are_many:
            self._passing[subject] = iter(keys), changes.initial
            return
        for key in keys:
            self._handle(key, changes.initial)

    def _go_on_at(self, moment: float) -> None:
        """Schedule `_go_on`, unless it runs earlier anyway."""
        if moment < self._next:
            self._next = moment
            self._call_later(max(moment - self._now(), 0.0), partial(self._go_on, moment))

    def _go_on(self, planned: float) -> None:
        if planned != self._next:
            return  # superseded by an earlier one
        self._next, began = math.inf, self._now()
        try:
            self._pass_on()
            for subject in [each for each in self._waiting if self._is_due(each, began)]:
                self._begin(subject)
        finally:
            now = self._now()
            self._resting = {each: until for each, until in self._resting.items() if until > began}
            self._paused_until = now + _PAUSE * (now - began)
            if self._passing:
                self._go_on_at(self._paused_until)
            elif self._waiting:
                self._go_on_at(min(self._resting.get(each, 0.0) for each in self._waiting))

    def _is_due(self, subject: S, now: float) -> bool:
        return subject not in self._passing and self._resting.get(subject, 0.0) <= now

    def _pass_on(self) -> None:
        """Pass on the next piece."""
        if not self._passing:
            return
        subject, (keys, initial) = self._passing.popitem(last=False)
        piece = list(islice(keys, _PIECE))
        if len(piece) == _PIECE:
            self._passing[subject] = keys, initial
        for key in piece:
            self._handle(key, initial)


def _call_later(seconds: float, callback: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, callback)
