"""Queries to Prometheus: seldom, only where it was configured, and within bounds."""

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import aiohttp
import pytest

from agent.controller_manager.seed_autoscaler import prometheus as module
from agent.controller_manager.seed_autoscaler.prometheus import Prometheus
from config.controller_manager.controllers import Prometheus as Address
from config.controller_manager.controllers import SeedResource
from kit.prometheus import prometheus

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def source_of(url: str) -> Prometheus:
    return Prometheus(SeedResource(name="volumes", prometheus=Address(address=url, query="q")), period=MINUTE)


async def test_all_who_ask_within_a_period_get_one_answer() -> None:
    async with prometheus() as server:
        server.clock, server.samples = START.timestamp, {"a": "3"}
        source = source_of(f"{server.url}/")
        found = await asyncio.gather(*(source.measured(START + number * MINUTE / 10) for number in range(10)))
        assert [each.by_seed for each in found] == [{"a": Fraction(3)}] * 10
        assert (server.queries, source.again_at) == (["q"], START + MINUTE)
        await source.measured(START + MINUTE)
        assert len(server.queries) == 2
        await source.measured(START - MINUTE)  # The clock was repaired.
        assert len(server.queries) == 3


async def test_what_was_reported_last_counts_until_it_is_old() -> None:
    async with prometheus() as server:
        server.clock, server.samples = START.timestamp, {"a": "3"}
        source = source_of(server.url)
        await source.measured(START)
        server.status = 503
        failed = await source.measured(START + MINUTE)
        assert (failed.by_seed, failed.problem) == ({"a": Fraction(3)}, "Prometheus: HTTP 503: execution: no luck")
        assert (await source.measured(START + 6 * MINUTE)).by_seed == {}
    gone = await source.measured(START + 7 * MINUTE)
    assert gone.by_seed == {}
    assert gone.problem.startswith("Prometheus: Cannot connect to host 127.0.0.1:")


async def test_nothing_else_is_spoken_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async with prometheus() as other, prometheus() as server:
        monkeypatch.setenv("http_proxy", other.url)
        server.body, server.status = b"", 302
        server.headers = {"Location": f"{other.url}/api/v1/query?query=q"}
        found = await source_of(server.url).measured(START)
        assert (found.problem, len(server.queries), other.queries) == (
            "Prometheus: HTTP 302: the response is not from Prometheus",
            1,
            [],
        )


async def test_an_answer_is_bounded() -> None:
    async with prometheus() as server:
        server.body = b" " * (module._LONGEST_ANSWER + 1)
        found = await source_of(server.url).measured(START)
        assert found.problem == f"Prometheus: the response is larger than {module._LONGEST_ANSWER} bytes"


async def test_who_does_not_answer_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module._TIMEOUT.total == 10
    monkeypatch.setattr(module, "_TIMEOUT", aiohttp.ClientTimeout(total=0.05))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = await source_of(f"http://127.0.0.1:{silent.getsockname()[1]}").measured(START)
    assert (found.by_seed, found.problem) == ({}, "Prometheus did not respond in time")
