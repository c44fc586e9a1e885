"""The time of an API server, by the responses that it writes itself."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from kube.runtime.server_clock import CONFIRMATIONS, ServerClock, is_own_path

TRUE = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)
OWN, FOREIGN = "/api/v1/configmaps", "/apis/things.example.com/v1/things"


class Machine:
    """A machine, and an API server of which it has a clock; all three can be wrong."""

    def __init__(self, *, ahead: timedelta = timedelta(0)) -> None:
        self.ahead, self.server_ahead, self.passed = ahead, timedelta(0), timedelta(0)
        self.clock = ServerClock(lambda: self.true + self.ahead, elapsed=self.passed_seconds)

    @property
    def true(self) -> datetime:
        return TRUE + self.passed

    def passed_seconds(self) -> float:
        return self.passed.total_seconds()

    def responses(self, count: int = CONFIRMATIONS, path: str = OWN) -> None:
        for _ in range(count):
            self.clock.note(path, format_datetime(self.true + self.server_ahead, usegmt=True))

    def wait(self, time: timedelta) -> None:
        self.passed += time

    @property
    def error(self) -> timedelta:
        return self.clock() - self.true

    @property
    def error_of_deletions(self) -> timedelta:
        return self.clock.earliest() - self.true


@pytest.mark.parametrize("behind", [timedelta(0), timedelta(seconds=9), timedelta(seconds=-9)])
def test_the_own_clock_counts_while_both_agree(behind: timedelta) -> None:
    machine = Machine(ahead=-behind)
    machine.responses()
    assert machine.error == -behind


@pytest.mark.parametrize("ahead", [timedelta(seconds=11), DAY, -DAY, timedelta(hours=-3)])
def test_the_clock_of_the_api_server_counts_when_several_responses_agree(ahead: timedelta) -> None:
    machine = Machine(ahead=ahead)
    machine.responses(CONFIRMATIONS - 1)
    assert machine.error == ahead
    machine.responses(1)
    assert machine.error == timedelta(0)
    machine.wait(DAY)
    machine.responses()
    assert machine.error == timedelta(0)


@pytest.mark.parametrize("jump", [DAY, -DAY, timedelta(days=400), timedelta(minutes=5)])
def test_a_jump_of_the_machines_clock_has_no_effect(jump: timedelta) -> None:
    machine = Machine()
    machine.responses()
    machine.ahead = jump
    assert machine.error == timedelta(0)
    assert machine.error_of_deletions == min(jump, timedelta(0))
    machine.wait(timedelta(hours=1))
    machine.responses(20)
    assert machine.error == timedelta(0)


@pytest.mark.parametrize("jump", [DAY, timedelta(days=400), timedelta(minutes=5)])
def test_a_jump_of_the_api_servers_clock_deletes_nothing(jump: timedelta) -> None:
    machine = Machine()
    machine.responses()
    machine.server_ahead = jump
    machine.responses(20)
    assert machine.error_of_deletions == timedelta(0)
    machine.server_ahead = timedelta(0)
    machine.responses()
    assert machine.error == machine.error_of_deletions == timedelta(0)


@pytest.mark.parametrize("jump", [DAY, timedelta(hours=30), timedelta(minutes=5)])
def test_a_jump_of_both_clocks_together_deletes_nothing(jump: timedelta) -> None:
    machine = Machine()
    machine.responses()
    machine.ahead = machine.server_ahead = jump
    machine.responses()
    assert machine.error == jump
    assert machine.error_of_deletions == timedelta(0)


@pytest.mark.parametrize("ahead", [timedelta(days=400), timedelta(days=-400)])
def test_a_difference_of_a_year_is_not_believed_and_deletions_wait(ahead: timedelta) -> None:
    machine = Machine(ahead=ahead)
    machine.responses(20)
    assert machine.error == ahead
    assert machine.error_of_deletions == min(ahead, timedelta(0))


def test_deletions_follow_the_first_response_of_an_earlier_time() -> None:
    machine = Machine(ahead=DAY)
    machine.responses(1)
    assert machine.error_of_deletions == timedelta(0)


def test_a_single_response_among_others_changes_nothing() -> None:
    machine = Machine()
    for ahead in (DAY, DAY, timedelta(0), DAY, -DAY, DAY, timedelta(0)):
        machine.server_ahead = ahead
        machine.responses(1)
        assert machine.error == timedelta(0)


def test_responses_of_other_servers_change_nothing() -> None:
    machine = Machine()
    machine.server_ahead = -DAY
    machine.responses(20, path=FOREIGN)
    assert machine.error == machine.error_of_deletions == timedelta(0)


@pytest.mark.parametrize(
    ("path", "is_own"),
    [
        ("/version", True),
        ("/api", True),
        ("/apis", True),
        ("/api/v1", True),
        ("/api/v1/namespaces/a/secrets/b", True),
        ("/apis/coordination.k8s.io/v1/namespaces/a/leases/b", True),
        ("/apis/coordination.k8s.io/v9/namespaces/a/leases/b", False),
        ("/apis/things.example.com", False),
        ("/apis/things.example.com/v1/things", False),
        ("/apis/metrics.k8s.io/v1beta1/nodes", False),
        ("/api/v1/namespaces/a/services/b/proxy/api/v1", False),
        ("/api/v1/nodes/a/proxy", False),
        ("/api/v1/namespaces/a/pods/b/log", False),
        ("/api/v1beta1", False),
        ("/versions", False),
        ("/openapi/v3/apis/things.example.com/v1", False),
    ],
)
def test_own_paths(path: str, is_own: bool) -> None:
    assert is_own_path(path) == is_own


@pytest.mark.parametrize("unreadable", ["", "yesterday", "Tue, 99 Foo 2026 12:00:00 GMT"])
def test_a_date_that_can_not_be_read_changes_nothing(unreadable: str) -> None:
    machine = Machine()
    for _ in range(CONFIRMATIONS):
        machine.clock.note(OWN, unreadable)
    assert machine.error == machine.error_of_deletions == timedelta(0)
