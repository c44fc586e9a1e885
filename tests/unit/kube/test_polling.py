"""Waiting for a state that no watch reports."""

import pytest

from kube.runtime.polling import wait_while


@pytest.mark.parametrize(
    ("found", "seconds", "left", "reported"),
    [
        ([""], 0.0, "", []),
        (["a"], 0.0, "a", []),
        (["a", "a", "b", ""], 10.0, "", ["a", "b"]),
        (["a"] * 9, 0.02, "a", ["a"]),
    ],
)
async def test_a_problem_is_reported_when_it_changes_and_returned_at_the_end_of_the_time(
    found: list[str], seconds: float, left: str, reported: list[str]
) -> None:
    looks, texts = iter(found), list[str]()

    async def problem() -> str:
        return next(looks)

    assert await wait_while(problem, seconds=seconds, every=0.01, report=texts.append) == left
    assert texts == reported
