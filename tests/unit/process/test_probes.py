"""What health probes answer, how often checks run, and when watches count as synced."""

import asyncio
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from kit.clock import FakeClock
from process.probes import (
    PING,
    CheckFailed,
    CheckStatus,
    HealthCheck,
    ProbeHandler,
    cached,
    informer_sync,
    render_aggregate,
)


class Counted:
    """A check that counts its runs, fails on demand and takes as long as the test wants."""

    def __init__(self, *, holds: bool = False, failure: Exception | None = None) -> None:
        self.runs = 0
        self.failure = failure
        self.entered = asyncio.Event()
        self.may_end = asyncio.Event()
        if not holds:
            self.may_end.set()
        self.check = HealthCheck("counted", self._run)

    async def _run(self) -> None:
        self.runs += 1
        self.entered.set()
        await self.may_end.wait()
        if self.failure:
            raise self.failure


async def probe(handler: ProbeHandler, path: str, *, method: str = "GET") -> tuple[int, str | None]:
    response = await handler(make_mocked_request(method, path))
    return response.status, response.text


GOOD = [informer_sync(name, str) for name in ("webhook-server", "source-informer-sync")]
READY = [*GOOD, informer_sync("target-informer-sync", str)]
UNREADY = [*GOOD, informer_sync("target-informer-sync", lambda: "not synced: secrets.v1")]
VERBOSE = """\
[+]source-informer-sync ok
[+]target-informer-sync ok
[+]webhook-server ok
healthz check passed
"""
FAILED = """\
[+]source-informer-sync ok
[-]target-informer-sync failed: reason withheld
[+]webhook-server ok
healthz check failed
"""
EXCLUDED = """\
[+]source-informer-sync ok
[+]target-informer-sync excluded: ok
[+]webhook-server ok
healthz check passed
"""
UNKNOWN_EXCLUDE = """\
[+]source-informer-sync ok
[-]target-informer-sync failed: reason withheld
[+]webhook-server ok
warn: some health checks cannot be excluded: no matches for "nope"
healthz check failed
"""


@pytest.mark.parametrize(
    ("checks", "path", "expected"),
    [
        (READY, "/readyz", (200, "ok")),
        (READY, "/readyz/", (200, "ok")),
        (READY, "/readyz?verbose", (200, VERBOSE)),
        (READY, "/readyz?verbose=1", (200, VERBOSE)),
        (READY, "/readyz?exclude=nope", (200, "ok")),
        (UNREADY, "/readyz", (500, FAILED)),
        (UNREADY, "/readyz?verbose", (500, FAILED)),
        (UNREADY, "/readyz?exclude=target-informer-sync", (200, "ok")),
        (UNREADY, "/readyz?verbose&exclude=target-informer-sync", (200, EXCLUDED)),
        (UNREADY, "/readyz?exclude=nope", (500, UNKNOWN_EXCLUDE)),
        (READY, "/readyz/webhook-server", (200, "ok")),
        (UNREADY, "/readyz/target-informer-sync", (500, "internal server error: not synced: secrets.v1\n")),
        (READY, "/readyz/nope", (404, "404 page not found\n")),
        (READY, "/readyzzz", (404, "404 page not found\n")),
        (READY, "/", (404, "404 page not found\n")),
        (READY, "/healthz", (200, "ok")),
        (READY, "/healthz/ping", (200, "ok")),
        (READY, "/readyz/ping", (404, "404 page not found\n")),
    ],
)
async def test_bodies_and_statuses_are_those_of_the_original(
    checks: list[HealthCheck], path: str, expected: tuple[int, str]
) -> None:
    assert await probe(ProbeHandler({"/healthz": [PING], "/readyz": checks}), path) == expected


def test_several_unknown_excludes_are_listed_together() -> None:
    _, body = render_aggregate([CheckStatus("a", healthy=True)], verbose=True, unknown_excludes=["x", "y"])
    assert 'no matches for "x", "y"\n' in body


async def test_answers_are_plain_text_that_browsers_do_not_sniff() -> None:
    response = await ProbeHandler({"/healthz": [PING]})(make_mocked_request("GET", "/healthz"))
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_probes_only_read() -> None:
    assert (await probe(ProbeHandler({"/healthz": [PING]}), "/healthz", method="DELETE"))[0] == 405


async def test_checks_may_come_and_go() -> None:
    checks = [GOOD[0]]
    handler = ProbeHandler({"/readyz": lambda: checks})
    assert await probe(handler, "/readyz/later") == (404, "404 page not found\n")
    checks.append(informer_sync("later", lambda: "not synced"))
    assert await probe(handler, "/readyz/later") == (500, "internal server error: not synced\n")
    assert (await probe(handler, "/readyz"))[0] == 500
    checks.pop()
    assert await probe(handler, "/readyz") == (200, "ok")


async def test_an_excluded_check_is_not_run() -> None:
    counted = Counted()
    await probe(ProbeHandler({"/readyz": [counted.check]}), "/readyz?exclude=counted")
    assert counted.runs == 0


async def test_probes_at_the_same_time_share_one_run_and_later_ones_run_again() -> None:
    counted = Counted(holds=True)
    handler = ProbeHandler({"/readyz": [counted.check]})
    probes = [asyncio.create_task(probe(handler, path)) for path in ("/readyz", "/readyz/counted", "/readyz?verbose")]
    await counted.entered.wait()
    counted.may_end.set()
    assert [status for status, _ in await asyncio.gather(*probes)] == [200, 200, 200]
    assert counted.runs == 1
    await probe(handler, "/readyz")
    assert counted.runs == 2


async def test_a_probe_that_goes_away_does_not_end_the_run_of_the_others() -> None:
    counted = Counted(holds=True)
    handler = ProbeHandler({"/readyz": [counted.check]})
    leaving, staying = (asyncio.create_task(probe(handler, "/readyz")) for _ in range(2))
    await counted.entered.wait()
    leaving.cancel()
    await asyncio.wait({leaving})
    counted.may_end.set()
    assert await staying == (200, "ok")
    assert counted.runs == 1


@pytest.mark.parametrize(
    ("check", "reason"),
    [({"holds": True}, "no result within 10ms"), ({"failure": ZeroDivisionError()}, "ZeroDivisionError")],
)
async def test_a_check_that_hangs_or_crashes_fails(check: Any, reason: str) -> None:
    handler = ProbeHandler({"/readyz": [Counted(**check).check]}, timeout=0.01)
    assert await probe(handler, "/readyz/counted") == (500, f"internal server error: {reason}\n")


@pytest.mark.parametrize("failure", [None, OSError("refused")])
async def test_a_cached_check_runs_once_in_five_seconds_good_or_bad(failure: Exception | None) -> None:
    clock, counted = FakeClock(), Counted(failure=failure)
    check = cached(counted.check, clock=clock)

    async def outcome() -> str | None:
        try:
            await check.run()
        except CheckFailed as error:
            return str(error)
        return None

    expected = "refused" if failure else None
    assert [await outcome() for _ in range(3)] == [expected] * 3
    clock.now += 4.9
    assert await outcome() == expected
    assert counted.runs == 1
    clock.now += 0.1
    counted.failure = None
    assert await outcome() is None
    assert counted.runs == 2


async def test_a_cached_check_is_bounded_in_time() -> None:
    with pytest.raises(CheckFailed, match="no result within 10ms"):
        await cached(Counted(holds=True).check, timeout=0.01).run()
