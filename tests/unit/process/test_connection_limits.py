"""Who has to go when there are too many connections, or too much was sent."""

from dataclasses import dataclass

import pytest

from process.connection_limits import ConnectionLimits


@dataclass(eq=False)
class Client:
    since: float
    held: int = 0
    complete: bool = False


def of(*clients: Client, most: int = 100, most_held: int = 100) -> ConnectionLimits[Client]:
    connections: ConnectionLimits[Client] = ConnectionLimits(most=most, most_held=most_held)
    for each in clients:
        connections.opened(each)
        connections.held += each.held
    return connections


def sends(connections: ConnectionLimits[Client], sender: Client, size: int) -> list[Client]:
    sender.held += size
    connections.held += size
    return list(connections.too_much(sender))


def test_within_the_limits_no_connection_has_to_go() -> None:
    one, other = Client(1, held=50), Client(2)
    connections = of(one, other, most=2)
    assert sends(connections, other, 50) == []


def test_the_one_that_is_waited_for_the_longest_makes_room_for_another() -> None:
    busy, idle, slow = Client(1, complete=True), Client(2), Client(3, held=10)
    connections = of(busy, slow, idle, most=3)
    assert [connections.opened(Client(4 + number)) for number in range(2)] == [idle, slow]
    assert connections.held == 0


def test_a_new_one_has_to_go_if_all_others_are_being_answered() -> None:
    connections = of(Client(1, complete=True), Client(2, complete=True), most=2)
    new = Client(3)
    assert connections.opened(new) is new
    assert connections.opened(Client(4)) is not None


@pytest.mark.parametrize(("size", "gone"), [(10, 0), (11, 1), (40, 1), (41, 2), (70, 2), (71, 3)])
def test_as_many_have_to_go_as_hold_what_is_too_much(size: int, gone: int) -> None:
    slow = [Client(number, held=30) for number in range(3)]
    new = Client(9)
    connections = of(*reversed(slow), new)
    assert sends(connections, new, size) == slow[:gone]
    assert connections.held == 90 - 30 * gone + size


def test_who_holds_nothing_or_is_being_answered_gives_nothing_back() -> None:
    idle, busy, new = Client(1), Client(2, held=95, complete=True), Client(3)
    connections = of(idle, busy, new)
    assert sends(connections, new, 10) == [new]
    assert connections.held == 95


def test_one_that_sends_too_much_alone_has_to_go() -> None:
    greedy = Client(1, complete=True)
    connections = of(greedy)
    assert sends(connections, greedy, 101) == [greedy]
    assert connections.held == 0


def test_what_was_answered_or_closed_is_held_no_more() -> None:
    one, other = Client(1, held=40), Client(2, held=60)
    connections = of(one, other)
    connections.answered(one)
    assert (one.held, connections.held) == (0, 60)
    for _ in range(2):
        connections.closed(other)
    assert connections.held == 0
