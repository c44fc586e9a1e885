"""One object that changes, and many that are looked at for it."""

from collections.abc import Callable
from functools import partial
from itertools import count, pairwise
from operator import eq
from string import ascii_lowercase

import pytest

from kube.objects import Key
from kube.runtime.fan_out import FEW, LONGEST_REST, MOST_STATES, Changes, FanOut


class World:
    """A clock, its timers, and who refers to what."""

    def __init__(self, **users: int) -> None:
        self.users = users
        self.now = 0.0
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.requested: list[float] = []
        """When it was queried who refers to something."""
        self.handled: list[tuple[str, bool]] = []
        self.states: list[tuple[str | None, ...]] = []
        """States that were passed on, of the letters a to z; all: too many to know."""
        self.search_seconds = 0.0
        self._count = count()
        self.fan: FanOut[str, str] = FanOut(self.keys, self.handle, now=lambda: self.now, call_later=self.call_later)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        self.timers.append((self.now + seconds, next(self._count), callback))

    def keys(self, subject: str, changes: Changes[str]) -> list[Key]:
        self.requested.append(self.now)
        self.now += self.search_seconds
        self.states.append(tuple(letter for letter in ascii_lowercase if changes.any(partial(eq, letter))))
        return [Key("n", f"{subject}-{number}") for number in range(self.users[subject])]

    def handle(self, key: Key, initial: bool) -> None:
        self.now += 0.00001
        self.handled.append((key.name, initial))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.timers and min(self.timers)[0] <= until:
            self.timers.sort()
            at, _, callback = self.timers.pop(0)
            self.now = max(self.now, at)
            callback()
        self.now = max(self.now, until)

    def count(self, subject: str) -> int:
        return sum(name.startswith(f"{subject}-") for name, _ in self.handled)


def test_what_few_refer_to_is_passed_on_at_once_each_time() -> None:
    world = World(small=FEW)
    for _ in range(5):
        world.fan.add("small")
    assert world.count("small") == 5 * FEW
    assert not world.timers


def test_what_changes_all_the_time_costs_no_more_than_now_and_then() -> None:
    world = World(large=1000, small=1)
    for _ in range(1000):
        last = world.now
        world.fan.add("large")
        world.run(0.01)
    # The last change is passed on, too.
    world.run(2 * LONGEST_REST)
    assert len(world.requested) <= last / LONGEST_REST + 2
    assert world.requested[-1] >= last
    assert world.count("large") == 1000 * len(world.requested)
    # Others are not kept waiting meanwhile.
    world.fan.add("large")
    world.fan.add("small")
    assert world.count("small") == 1


def test_many_are_passed_on_in_pieces_between_which_others_have_turns() -> None:
    world = World(large=1000, other=1000)
    world.fan.add("large")
    world.fan.add("other")
    assert not world.handled
    largest = 0
    while world.timers:
        before = len(world.handled)
        world.run(min(world.timers)[0] - world.now)
        largest = max(largest, len(world.handled) - before)
        if len(world.handled) == 200:
            assert world.count("large") == world.count("other") == 100
    assert (world.count("large"), world.count("other")) == (1000, 1000)
    assert largest <= 50


@pytest.mark.parametrize(("changes", "expected"), [((True, True), True), ((True, False), False)])
def test_a_change_among_what_a_list_states_counts(changes: tuple[bool, ...], expected: bool) -> None:
    world = World(large=FEW + 1)
    world.fan.add("large", initial=True)
    for initial in changes:
        world.fan.add("large", initial=initial)
    world.run(1.0)
    assert world.handled[-1] == (f"large-{FEW}", expected)
    assert len(world.handled) == 2 * (FEW + 1)


@pytest.mark.parametrize(
    ("states", "known", "differs"),
    [
        ([("a", "b")], "ab", True),
        ([("a", "b"), ("b", "a")], "ab", True),
        ([("a", "a")], "a", False),
        ([(None, "a")], "a", True),
        ([("a", None)], "a", True),
        ([("a", None), (None, "b"), ("b", "a")], "ab", True),
        ([("a", "b")] * 100, "ab", True),
        (list(pairwise(ascii_lowercase[:MOST_STATES])), ascii_lowercase[:MOST_STATES], True),
        (list(pairwise(ascii_lowercase[: MOST_STATES + 1])), ascii_lowercase, True),
    ],
)
def test_states_in_between_count_and_after_many_all_do(
    states: list[tuple[str | None, ...]], known: str, differs: bool
) -> None:
    changes = Changes[str]()
    for each in states:
        changes.add(*each, initial=False)
    assert "".join(letter for letter in ascii_lowercase if changes.any(partial(eq, letter))) == known
    assert changes.differ(lambda state: state) is differs
    assert changes.differ(lambda _: None) is changes.are_many
    assert len(list(changes.states())) <= MOST_STATES


def test_what_changes_and_goes_back_is_passed_on_with_the_states_in_between() -> None:
    world = World(large=FEW + 1)
    for before, after in pairwise("abaca"):
        world.fan.add("large", before, after)
    world.run(1.0)
    world.fan.add("large", "a", "d")
    world.run(1.0)
    assert world.states == [("a", "b"), ("a", "b", "c"), ("a", "d")]


def test_a_search_that_takes_long_and_finds_little_rests_too() -> None:
    world = World(small=1)
    world.search_seconds = 0.01
    for _ in range(100):
        world.fan.add("small")
        world.run(0.01)
    world.run(1.0)
    assert len(world.requested) <= 12
    assert world.count("small") == len(world.requested)


def test_the_rest_of_one_delays_no_other() -> None:
    world = World(large=1000, other=FEW + 1)
    world.fan.add("large")
    world.run(1.0)
    world.fan.add("large")
    assert min(world.timers)[0] - world.now > 1.0, "it rests"
    world.fan.add("other")
    world.run(0.01)
    assert world.count("other") == FEW + 1
    world.run(LONGEST_REST)
    assert world.count("large") == 2000
    assert len(world.requested) == 3


def test_what_cannot_be_passed_on_keeps_no_other_waiting() -> None:
    world = World(large=1000, other=1000)
    world.fan.add("large")
    world.fan.add("other")
    world.run(1.0)
    for each in ("large", "other"):
        world.fan.add(each)
    del world.users["large"]
    with pytest.raises(KeyError):
        world.run(LONGEST_REST)
    world.run(LONGEST_REST)
    assert world.count("other") == 2000
