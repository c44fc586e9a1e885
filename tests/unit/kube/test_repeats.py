"""Events of an object do not repeat from pass to pass."""

from kube.objects import Key
from kube.repeats import Reminders, Repeats

OWN, OTHER = Key("garden", "n"), Key("garden", "o")


def test_what_the_pass_before_has_reported_is_no_news() -> None:
    repeats: Repeats[tuple[str, int]] = Repeats()

    def new(*messages: str, number: int = 0, is_suspended: bool = False) -> list[str]:
        repeats.begin(OWN)
        found = [message for message in messages if repeats.is_new(OWN, (message, number))]
        if is_suspended:
            repeats.suspend(OWN)
        return found

    assert new("a", "b", "a") == ["a", "b"]
    assert new("a") == []
    assert new("b", "a") == ["b"]
    assert new("a", number=1) == ["a"]
    assert new("c", is_suspended=True) == ["c"]
    assert new("a", number=1) == []
    assert new() == []
    assert new("a", number=1) == ["a"]


def test_news_of_a_pass_are_in_its_order_and_of_its_object() -> None:
    repeats: Repeats[str] = Repeats()
    assert repeats.news(OWN, ["b", "a", "b"]) == ["b", "a"]
    assert repeats.news(OTHER, ["b"]) == ["b"]
    assert repeats.news(OWN, ["c", "a"]) == ["c"]
    assert set(repeats.reported(OWN)) == {"a", "c"}
    assert sorted(map(len, repeats.all())) == [1, 2]
    repeats.forget(OWN)
    assert not repeats.reported(OWN)
    assert repeats.news(OWN, ["a"]) == ["a"]
    assert repeats.news(OWN, []) == []
    assert [*repeats.all()] == [{"b"}]


def test_what_goes_on_is_logged_once_in_a_period_for_each_text() -> None:
    seconds = 0.0
    reminders = Reminders(60, now=lambda: seconds)
    logged = []
    for seconds, text in [(0, "a"), (2, "a"), (4, "b"), (6, "a"), (59, "a"), (60, "a"), (62, "b"), (64, "b")]:
        if reminders.is_due(text):
            logged.append((seconds, text))
    assert logged == [(0, "a"), (4, "b"), (60, "a"), (64, "b")]
