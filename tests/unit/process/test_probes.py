"""What health probes answer, how often checks run, and when watches count as synced."""

import asyncio

import pytest
import structlog
from aiohttp.test_utils import make_mocked_request

from process.probes import (
    NOT_SYNCED,
    PING,
    CheckFailed,
    CheckStatus,
    HealthCheck,
    ProbeHandler,
    ReadyWatches,
    WatchState,
    apiserver_check,
    cached,
    informer_sync,
    informer_sync_liveness,
    render_aggregate,
)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Counted:
    """A check that counts its runs, fails on demand and takes as long as the test wants."""

    def __init__(self, name="counted"):
        self.runs = 0
        self.failure: Exception | None = None
        self.entered = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.check = HealthCheck(name, self._run)

    async def _run(self):
        self.runs += 1
        self.entered.set()
        await self.gate.wait()
        if self.failure:
            raise self.failure


def good(name):
    return informer_sync(name, lambda: True)


def bad(name):
    return informer_sync(name, lambda: False)


async def probe(handler, path, method="GET"):
    response = await handler(make_mocked_request(method, path))
    return response.status, response.text


READY = [good("webhook-server"), good("source-informer-sync"), good("target-informer-sync")]
UNREADY = [good("webhook-server"), good("source-informer-sync"), bad("target-informer-sync")]

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
        (UNREADY, "/readyz/target-informer-sync", (500, f"internal server error: {NOT_SYNCED}\n")),
        (READY, "/readyz/nope", (404, "404 page not found\n")),
        (READY, "/readyzzz", (404, "404 page not found\n")),
        (READY, "/", (404, "404 page not found\n")),
        (READY, "/healthz", (200, "ok")),
        (READY, "/healthz/ping", (200, "ok")),
        (READY, "/readyz/ping", (404, "404 page not found\n")),
    ],
)
async def test_bodies_and_statuses_are_those_of_the_original(checks, path, expected):
    assert await probe(ProbeHandler({"/healthz": [PING], "/readyz": checks}), path) == expected


def test_several_unknown_excludes_are_listed_together():
    _, body = render_aggregate([CheckStatus("a", healthy=True)], verbose=True, unknown_excludes=["x", "y"])
    assert 'no matches for "x", "y"\n' in body


async def test_answers_are_plain_text_that_browsers_do_not_sniff():
    response = await ProbeHandler({"/healthz": [PING]})(make_mocked_request("GET", "/healthz"))
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_probes_only_read():
    status, _ = await probe(ProbeHandler({"/healthz": [PING]}), "/healthz", method="DELETE")
    assert status == 405


async def test_an_excluded_check_is_not_run():
    counted = Counted()
    await probe(ProbeHandler({"/readyz": [counted.check]}), "/readyz?exclude=counted")
    assert counted.runs == 0


async def test_probes_at_the_same_time_share_one_run_and_later_ones_run_again():
    counted = Counted()
    counted.gate.clear()
    handler = ProbeHandler({"/readyz": [counted.check]})
    probes = [asyncio.create_task(probe(handler, path)) for path in ("/readyz", "/readyz/counted", "/readyz?verbose")]
    await counted.entered.wait()
    counted.gate.set()
    assert [status for status, _ in await asyncio.gather(*probes)] == [200, 200, 200]
    assert counted.runs == 1
    await probe(handler, "/readyz")
    assert counted.runs == 2


async def test_a_probe_that_goes_away_does_not_end_the_run_of_the_others():
    counted = Counted()
    counted.gate.clear()
    handler = ProbeHandler({"/readyz": [counted.check]})
    leaving, staying = (asyncio.create_task(probe(handler, "/readyz")) for _ in range(2))
    await counted.entered.wait()
    leaving.cancel()
    await asyncio.wait({leaving})
    counted.gate.set()
    assert await staying == (200, "ok")
    assert counted.runs == 1


async def test_a_check_that_hangs_fails_after_its_time_limit():
    counted = Counted()
    counted.gate.clear()
    handler = ProbeHandler({"/readyz": [counted.check]}, timeout=0.01)
    assert await probe(handler, "/readyz/counted") == (500, "internal server error: no result within 10ms\n")


async def test_a_check_that_crashes_is_a_failed_check():
    counted = Counted()
    counted.failure = ZeroDivisionError()
    status, body = await probe(ProbeHandler({"/readyz": [counted.check]}), "/readyz/counted")
    assert (status, body) == (500, "internal server error: ZeroDivisionError\n")


@pytest.mark.parametrize("failure", [None, OSError("refused")])
async def test_a_cached_check_runs_once_in_five_seconds_good_or_bad(failure):
    clock, counted = Clock(), Counted()
    counted.failure = failure
    check = cached(counted.check, clock=clock)

    async def outcome():
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


async def test_a_cached_check_is_bounded_in_time():
    counted = Counted()
    counted.gate.clear()
    with pytest.raises(CheckFailed, match="no result within 10ms"):
        await cached(counted.check, timeout=0.01).run()


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (200, None),
        (503, "failed talking to the source cluster's kube-apiserver (status code: 503)"),
    ],
)
async def test_the_api_server_is_healthy_when_it_answers_200(status, reason):
    async def get_status():
        return status

    check = apiserver_check(get_status)
    assert check.name == "apiserver-healthz"
    if reason is None:
        await check.run()
    else:
        with pytest.raises(CheckFailed) as caught:
            await check.run()
        assert str(caught.value) == reason


async def test_liveness_fails_after_three_minutes_unsynced_between_probes():
    clock, synced = Clock(), [False]
    check = informer_sync_liveness("source-informer-sync", lambda: synced[0], clock=clock)
    await check.run()
    clock.now += 179.9
    await check.run()
    clock.now += 0.1
    with pytest.raises(CheckFailed, match=NOT_SYNCED):
        await check.run()


async def test_liveness_logs_that_it_still_waits():
    clock = Clock()
    check = informer_sync_liveness("source-informer-sync", lambda: False, clock=clock)
    with structlog.testing.capture_logs() as entries:
        await check.run()
        clock.now += 60
        await check.run()
    assert [entry["notSyncedFor"] for entry in entries] == ["0s", "1m0s"]
    assert entries[1] == {
        "log_level": "info",
        "event": "Cache sync check failed, but deadline not yet exceeded",
        "check": "source-informer-sync",
        "notSyncedFor": "1m0s",
        "deadline": "3m0s",
        "error": NOT_SYNCED,
    }


async def test_liveness_forgets_as_soon_as_a_probe_sees_the_watches_synced():
    clock, synced = Clock(), [False]
    check = informer_sync_liveness("source-informer-sync", lambda: synced[0], clock=clock)
    await check.run()
    clock.now += 170
    synced[0] = True
    await check.run()
    synced[0] = False
    clock.now += 170
    await check.run()
    clock.now += 179
    await check.run()


@pytest.mark.parametrize(
    ("watch", "counts"),
    [
        (WatchState("pods", synced=False, started_at=1000.0, needed_at_start=True), True),
        (WatchState("pods", synced=True, started_at=0.0, needed_at_start=True), False),
        (WatchState("pods", synced=False, started_at=995.0, needed_at_start=False), False),
        (WatchState("pods", synced=False, started_at=990.0, needed_at_start=False), False),
        (WatchState("pods", synced=False, started_at=989.9, needed_at_start=False), True),
        (WatchState("pods", synced=True, started_at=0.0, needed_at_start=False), False),
    ],
)
def test_a_late_watch_counts_for_readiness_only_after_ten_seconds(watch, counts):
    watches = ReadyWatches(lambda: [watch, WatchState("nodes", True, 0.0, True)], clock=Clock())
    assert watches.missing() == (["pods"] if counts else [])
    assert watches() is not counts
