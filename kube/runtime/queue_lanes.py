"""Ready keys of a work queue: a lane for each priority, in which flows take turns. Pure."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kube.runtime.priorities import CHANGE, LAST, PRIORITIES, Priority

_TURNS = 4
"""Limit of turns in which bulk keys are passed over in favour of a higher priority while they wait."""
_LAST_TURNS = 40
"""The same limit for keys of priority `LAST`."""

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class Waiting:
    since: float
    priority: Priority


class Lane(Generic[K]):
    """Ready keys of a priority: one of each flow, in turn."""

    def __init__(self, flow: Callable[[K], Hashable]) -> None:
        self._flow = flow
        # Ordered, since plain dicts get slow when many items are taken from their front.
        self._flows: OrderedDict[Hashable, OrderedDict[K, Waiting]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def count(self, held: Collection[Hashable]) -> int:
        """Number of keys of other flows than these."""
        return self._count - sum(len(self._flows.get(flow, ())) for flow in held)

    def count_flows(self, held: Collection[Hashable]) -> int:
        """Number of other flows than these; keys without a flow do not count."""
        return len(self._flows) - sum(each in self._flows for each in {None, *held})

    def get(self, key: K) -> Waiting | None:
        keys = self._flows.get(self._flow(key))
        return None if keys is None else keys.get(key)

    def put(self, key: K, waiting: Waiting) -> None:
        """Add a key that is not in the lane."""
        self._flows.setdefault(self._flow(key), OrderedDict())[key] = waiting
        self._count += 1

    def remove(self, key: K) -> None:
        """Remove a key that is in the lane."""
        flow = self._flow(key)
        del self._flows[flow][key]
        self._count -= 1
        if not self._flows[flow]:
            del self._flows[flow]

    def pop(self, held: Collection[Hashable]) -> tuple[K, Waiting]:
        """Next key of another flow than these; there must be one."""
        flow, keys = next(each for each in self._flows.items() if each[0] not in held)
        key, waiting = keys.popitem(last=False)
        self._count -= 1
        if keys:
            self._flows.move_to_end(flow)
        else:
            del self._flows[flow]
        return key, waiting

    def clear(self) -> None:
        self._flows.clear()
        self._count = 0


class Lanes(Generic[K]):
    """All ready keys.

    Args:
        flow: flow of a key.
        highest: current upper limit of a key's priority.
    """

    def __init__(self, flow: Callable[[K], Hashable], highest: Callable[[K], Priority]) -> None:
        self._highest = highest
        self._lanes: dict[Priority, Lane[K]] = {priority: Lane(flow) for priority in PRIORITIES}
        self._passed_over: dict[Priority, int] = dict.fromkeys(PRIORITIES, 0)

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def __getitem__(self, priority: Priority) -> Lane[K]:
        return self._lanes[priority]

    def find(self, key: K) -> Waiting | None:
        return next((found for lane in self._lanes.values() if (found := lane.get(key)) is not None), None)

    def put(self, key: K, waiting: Waiting) -> None:
        """Add a key that is in no lane."""
        waiting.priority = min(waiting.priority, self._highest(key))
        self._lanes[waiting.priority].put(key, waiting)

    def lift(self, key: K, waiting: Waiting, priority: Priority) -> None:
        """Move a waiting key to the lane of this priority, if that is higher and allowed."""
        changed = min(max(priority, waiting.priority), self._highest(key))
        if changed != waiting.priority:
            self._lanes[waiting.priority].remove(key)
            waiting.priority = changed
            self.put(key, waiting)

    def pop(self, held: Collection[Hashable], *, with_bulk: bool) -> tuple[K, Waiting]:
        """Next key; there must be one.

        Args:
            held: flows that get nothing now.
            with_bulk: whether it may be another than a change.
        """
        return self._lanes[self._next_priority(held, with_bulk=with_bulk)].pop(held)

    def _next_priority(self, held: Collection[Hashable], *, with_bulk: bool) -> Priority:
        """Highest priority of which a key may be handed out, unless a lower one was passed over too often."""
        waiting = [each for each in PRIORITIES if self._lanes[each].count(held) and (each == CHANGE or with_bulk)]
        turns = {each: _LAST_TURNS if each == LAST else _TURNS for each in waiting[1:]}
        in_turn = (each for each, most in turns.items() if self._passed_over[each] >= most)
        chosen = next(in_turn, waiting[0])
        for each in waiting:
            self._passed_over[each] = 0 if each == chosen else self._passed_over[each] + 1
        return chosen

    def clear(self) -> None:
        for lane in self._lanes.values():
            lane.clear()
