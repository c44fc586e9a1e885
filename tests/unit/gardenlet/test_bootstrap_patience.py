"""What is requested from an API server that is away is queried again; what it refuses is an answer."""

import pytest

from agent.gardenlet.bootstrap.pace import Pace, is_passing
from kit.clock import FakeClock
from kube.errors import (
    ApiError,
    Forbidden,
    KubeError,
    NoStatus,
    NotFound,
    NotReady,
    NotUnderstood,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (Unreachable("away"), True),
        (NotUnderstood("no JSON"), True),
        (NoStatus(404, "404 page not found"), True),
        (TooManyRequests(429, message="later"), True),
        (ServerFailure(500, message="etcd is slow"), True),
        (NotReady(403, message="not yet ready to handle request"), True),
        (Unauthorized(401, message="<html>log in</html>"), True),
        (Unauthorized(401, message="Unauthorized", reason="Unauthorized"), False),
        (Forbidden(403, message="no", reason="Forbidden"), False),
        (NotFound(404, message="no", reason="NotFound"), False),
        (ApiError(409, message="no", reason="Conflict"), False),
    ],
)
def test_what_reports_nothing_about_the_question_passes(error: KubeError, passes: bool) -> None:
    assert is_passing(error) is passes


class Asked:
    """Fails so often, and then has an answer; each time takes no time."""

    def __init__(self, *failures: KubeError) -> None:
        self.failures = list(failures)

    async def __call__(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


@pytest.fixture
def pace() -> Pace:
    clock = FakeClock()

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    return Pace(now=clock, sleep=sleep)


async def test_an_answer_is_waited_for_as_long_as_it_takes(pace: Pace) -> None:
    began = pace.now()
    assert await pace.patiently("ask", Asked(*[Unreachable("away")] * 300)) == "answer"
    assert pace.now() - began == 600


async def test_a_refusal_is_an_answer(pace: Pace) -> None:
    with pytest.raises(Forbidden):
        await pace.patiently("ask", Asked(Unreachable("away"), Forbidden(403, message="no", reason="Forbidden")))


async def test_the_last_failure_is_raised_when_time_is_over(pace: Pace) -> None:
    until = pace.now() + 60
    with pytest.raises(Unreachable, match="still away"):
        await pace.patiently("ask", Asked(*[Unreachable("still away")] * 300), until=until)
    assert until - 2 <= pace.now() <= until
