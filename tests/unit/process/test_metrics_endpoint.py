"""Exposition of metrics in the form that is requested, and profiling only when it is on."""

import asyncio
import gzip
import hashlib

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from prometheus_client import REGISTRY, CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from kit.http import get
from process.metrics import MetricsHandler, describe_process, metrics_server


async def fetch(handler: MetricsHandler, path: str = "/metrics", method: str = "GET", **headers: str) -> web.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await handler(make_mocked_request(method, path, headers=given))
    assert isinstance(response, web.Response)
    return response


def body_of(response: web.Response) -> bytes:
    assert isinstance(response.body, bytes)
    return response.body


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc()
    return registry


async def test_the_default_is_the_text_format_that_every_scraper_reads(registry: CollectorRegistry) -> None:
    response = await fetch(MetricsHandler(registry=registry))
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"things_total 1.0\n" in body_of(response)


async def test_openmetrics_is_given_when_requested(registry: CollectorRegistry) -> None:
    response = await fetch(MetricsHandler(registry=registry), Accept="application/openmetrics-text;version=1.0.0")
    assert response.headers["Content-Type"].startswith("application/openmetrics-text")
    assert body_of(response).endswith(b"# EOF\n")


async def test_the_answer_is_compressed_when_the_scraper_accepts_gzip(registry: CollectorRegistry) -> None:
    response = await fetch(MetricsHandler(registry=registry), Accept_Encoding="deflate, gzip")
    assert response.headers["Content-Encoding"] == "gzip"
    assert b"things_total 1.0\n" in gzip.decompress(body_of(response))


async def test_metrics_of_the_process_are_part_of_the_default_registry() -> None:
    families = text_string_to_metric_families(body_of(await fetch(MetricsHandler())).decode())
    names = {sample.name for family in families for sample in family.samples}
    expected = ("cpu_seconds_total", "open_fds", "max_fds", "resident_memory_bytes", "virtual_memory_bytes")
    assert {f"process_{name}" for name in (*expected, "start_time_seconds")} <= names


async def test_tasks_of_the_event_loop_are_counted() -> None:
    def tasks() -> float:
        found = REGISTRY.get_sample_value("asyncio_tasks")
        assert found is not None
        return found

    before = tasks()
    more = [asyncio.create_task(asyncio.sleep(60)) for _ in range(7)]
    try:
        assert tasks() == before + 7
        assert await asyncio.to_thread(tasks) == 0  # outside of the event loop
    finally:
        for task in more:
            task.cancel()


async def test_version_and_configuration_can_be_compared_between_replicas(registry: CollectorRegistry) -> None:
    describe_process(version="v1.2.3", configuration=b"config", prefix="scheduler", registry=registry)
    text = body_of(await fetch(MetricsHandler(registry=registry))).decode()
    assert 'scheduler_build_info{version="v1.2.3"} 1.0\n' in text
    expected = float(int(hashlib.sha256(b"config").hexdigest()[:12], 16))
    assert registry.get_sample_value("scheduler_config_hash") == expected
    assert "_created" not in text


@pytest.mark.parametrize("path", ["/", "/metrics/", "/debug/pprof", "/debug/pprof/", "/debug/pprof/profile"])
async def test_other_paths_are_not_found_when_profiling_is_off(path: str) -> None:
    assert (await fetch(MetricsHandler(), path)).status == 404


async def test_metrics_are_only_read() -> None:
    assert (await fetch(MetricsHandler(), method="POST")).status == 405


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        ("/debug/pprof/", 200, "profile?seconds=N"),
        ("/debug/pprof/symbol", 501, "not available"),
        ("/debug/pprof/trace", 200, "tests/unit/process/test_metrics_endpoint.py"),
        ("/debug/pprof/nope", 404, "not found"),
        ("/debug/pprof/profile?seconds=61", 400, "at most 60"),
        ("/debug/pprof/profile?seconds=0", 400, "above 0"),
        ("/debug/pprof/profile?seconds=nan", 400, "must be a number"),
        ("/debug/pprof/profile?seconds=x", 400, "must be a number"),
        ("/debug/pprof/profile?seconds=0.01", 200, "function calls"),
    ],
)
async def test_profiling_paths_answer_with_what_python_can_report(path: str, status: int, part: str) -> None:
    response = await fetch(MetricsHandler(profiling=True), path)
    assert response.status == status
    assert part in body_of(response).decode()


async def test_the_index_of_profiles_is_found_without_the_slash() -> None:
    response = await fetch(MetricsHandler(profiling=True), "/debug/pprof")
    assert (response.status, response.headers["Location"]) == (302, "/debug/pprof/")


async def test_only_one_profile_is_taken_at_a_time() -> None:
    handler = MetricsHandler(profiling=True)
    first = asyncio.create_task(fetch(handler, "/debug/pprof/profile?seconds=0.05"))
    await asyncio.sleep(0)
    assert (await fetch(handler, "/debug/pprof/profile?seconds=0.05")).status == 409
    assert (await first).status == 200
    assert (await fetch(handler, "/debug/pprof/profile?seconds=0.01")).status == 200


async def test_the_metrics_server_serves_over_http() -> None:
    server = metrics_server(host="127.0.0.1", port=0)
    await server.start()
    try:
        status, text = await get(f"http://127.0.0.1:{server.port}/metrics")
        assert status == 200
        assert "python_info" in text
    finally:
        await server.stop()


async def test_pages_are_served_beside_the_metrics_and_answer_for_themselves() -> None:
    async def page(request: web.BaseRequest) -> web.Response:
        return web.Response(text=f"{request.method} {request.path}")

    handler = MetricsHandler(pages={"flows": page})
    assert body_of(await fetch(handler, "/flows/seed/meadow", method="POST")) == b"POST /flows/seed/meadow"
    assert (await fetch(handler, "/flowsheet")).status == 404
    assert (await fetch(handler)).status == 200
