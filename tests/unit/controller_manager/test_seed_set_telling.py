"""Events of a ManagedSeedSet do not repeat from pass to pass."""

from typing import Any

from agent.controller_manager.managed_seed_set.telling import Teller
from kube.objects import Object

OBJ: Object = {"metadata": {"name": "n", "namespace": "garden"}}


class Recorded:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def event(self, obj: Object, type_: str, reason: str, message: str, *, reporter: str = "") -> None:
        assert (obj, reporter) == (OBJ, "managedseedset-controller")
        self.messages.append(message)


def test_what_the_pass_before_has_told_is_not_told_again() -> None:
    recorded: Any = Recorded()
    teller = Teller(recorded)

    def told(*messages: str, number: int = 0, is_suspended: bool = False) -> list[str]:
        recorded.messages.clear()
        teller.begin()
        for message in messages:
            teller.tell(OBJ, "Warning", "R", message, number=number)
        if is_suspended:
            teller.suspend()
        return list(recorded.messages)

    assert told("a", "b", "a") == ["a", "b"]
    assert told("a") == []
    assert told("b", "a") == ["b"]
    assert told("a", number=1) == ["a"]
    assert told("c", is_suspended=True) == ["c"]
    assert told("a", number=1) == []
    assert told() == []
    assert told("a", number=1) == ["a"]
