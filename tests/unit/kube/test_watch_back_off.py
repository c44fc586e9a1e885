"""How long a watch waits before it tries again."""

import pytest

from kube.errors import KubeError, ServerFailure, Unreachable
from kube.watch import Timings


@pytest.mark.parametrize(
    ("failures", "error", "seconds"),
    [
        (0, None, 0.2),
        (1, ServerFailure(500, message="x"), 0.4),
        (4, ServerFailure(500, message="x"), 3.2),
        (50, ServerFailure(500, message="x"), 30),
        (50, None, 30),
        (0, Unreachable("x"), 0.2),
        (4, Unreachable("x"), 3.2),
        # An API server that was away for minutes is found again in seconds.
        (5, Unreachable("x"), 5),
        (50, Unreachable("x"), 5),
    ],
)
def test_the_longest_wait_grows_and_is_short_while_nobody_answers(
    failures: int, error: KubeError | None, seconds: float
) -> None:
    assert Timings().back_off(failures, error) == pytest.approx(seconds)


def test_a_shorter_bound_holds_for_all() -> None:
    assert Timings(longest_back_off=0.3).back_off(50, Unreachable("x")) == 0.3
