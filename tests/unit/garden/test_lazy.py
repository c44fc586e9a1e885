"""Attributes that are worked out when they are first read."""

from webhooks.garden.common.lazy import lazy


class Counted:
    def __init__(self) -> None:
        self.times = 0

    @lazy
    def value(self) -> int:
        """What is asked for."""
        self.times += 1
        return self.times


def test_it_is_worked_out_once_for_each_object() -> None:
    one, other = Counted(), Counted()
    assert (one.times, one.value, one.value, one.times) == (0, 1, 1, 1)
    assert (other.times, other.value) == (0, 1)


def test_it_can_be_set_as_any_attribute() -> None:
    one = Counted()
    one.value = 7
    assert (one.value, one.times) == (7, 0)


def test_the_class_tells_what_it_is() -> None:
    assert Counted.value.__doc__ == "What is asked for."
