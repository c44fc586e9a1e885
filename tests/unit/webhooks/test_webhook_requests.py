"""HTTP around the webhooks: what is found, counted, and answered when something breaks."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import pytest
import structlog

from kit import http
from kit.clock import FakeClock
from kit.eventually import soon
from webhooks.server import Clients, Disabled, Requests

ANSWER = b'{"response":{}}'
JSON = {"Content-Type": "application/json"}


async def echo(body: bytes, content_type: str) -> bytes:
    return json.dumps({"body": body.decode(), "contentType": content_type}).encode()


async def broken(_body: bytes, _content_type: str) -> bytes:
    raise RuntimeError("oops")


@contextlib.asynccontextmanager
async def serving(requests: Requests) -> AsyncIterator[str]:
    async with http.serving(requests) as server:
        yield f"http://127.0.0.1:{server.port}"


async def post(
    url: str, body: bytes = b"{}", headers: Mapping[str, str] = JSON
) -> tuple[int, bytes, Mapping[str, str]]:
    return await http.ask("POST", url, data=body, headers=headers)


@pytest.mark.parametrize("query", ["", "?timeout=10s"])
async def test_an_endpoint_gets_body_and_content_type_as_they_came(query: str) -> None:
    async with serving(Requests({"/echo": echo})) as url:
        status, body, headers = await post(f"{url}/echo{query}", b"text", {"Content-Type": "text/x; y=z"})
    assert status == 200
    assert json.loads(body) == {"body": "text", "contentType": "text/x; y=z"}
    assert headers["Content-Type"] == "application/json"
    assert int(headers["Content-Length"]) == len(body)
    assert headers["Date"].endswith("GMT")


async def test_a_client_that_wants_to_close_is_obeyed() -> None:
    async with serving(Requests({"/echo": echo})) as url:
        _, _, headers = await post(f"{url}/echo", headers={**JSON, "Connection": "close"})
    assert headers["Connection"] == "close"


async def test_the_answer_to_a_head_request_has_no_body() -> None:
    async with serving(Requests({"/echo": echo})) as url, aiohttp.ClientSession() as session:
        for _ in range(2):  # on one connection
            async with session.head(f"{url}/echo") as answer:
                assert (answer.status, await answer.read()) == (200, b"")


@pytest.mark.parametrize("path", ["/", "/echo/", "/echoes", "/ECHO", "//echo"])
async def test_other_paths_are_not_found(path: str) -> None:
    async with serving(Requests({"/echo": echo})) as url:
        assert (await post(url + path))[:2] == (404, b"404 page not found\n")


async def test_a_mistake_in_an_endpoint_is_a_status_of_500_and_the_server_goes_on() -> None:
    async with serving(Requests({"/broken": broken, "/echo": echo})) as url:
        assert (await post(f"{url}/broken"))[:2] == (500, b"internal server error\n")
        assert (await post(f"{url}/echo"))[0] == 200


async def test_a_body_is_not_decompressed_whatever_it_reports_of_itself() -> None:
    async with serving(Requests({"/echo": echo})) as url:
        status, body, _ = await post(f"{url}/echo", b"no gzip", {**JSON, "Content-Encoding": "gzip"})
    assert status == 200
    assert json.loads(body)["body"] == "no gzip"


def requested(logs: list[structlog.typing.EventDict]) -> list[tuple[str, str, str]]:
    return [(entry["log_level"], entry["path"], entry.get("setting", "")) for entry in logs]


async def test_large_reviews_that_wait_for_an_api_server_keep_no_others_waiting() -> None:
    begun, answers = 0, asyncio.Event()

    async def waiting(_body: bytes, _content_type: str) -> bytes:
        nonlocal begun
        begun += 1
        await answers.wait()
        return ANSWER

    async def ready(_body: bytes, _content_type: str) -> bytes:
        return ANSWER

    large = b"x" * (600 << 10)
    async with serving(Requests({"/waiting": waiting, "/ready": ready})) as url:
        waiters = [asyncio.create_task(post(f"{url}/waiting", large)) for _ in range(5)]
        await soon(lambda: begun == len(waiters))
        assert (await asyncio.wait_for(post(f"{url}/ready", large), 60))[1] == ANSWER
        answers.set()
        assert [body for _, body, _ in await asyncio.gather(*waiters)] == [ANSWER] * len(waiters)


async def test_requests_for_what_is_off_are_logged_once_a_minute() -> None:
    clock = FakeClock(0.0)
    off = [Disabled("/off", "off", "webhooks.off.enabled"), Disabled("/out", "out", "webhooks.out.enabled")]
    with structlog.testing.capture_logs() as logs:
        async with serving(Requests({}, off, clock=clock)) as url:
            for path in ("/off", "/off", "/out", "/a", "/b"):
                await post(url + path)
            assert requested(logs) == [
                ("warning", "/off", "webhooks.off.enabled"),
                ("warning", "/out", "webhooks.out.enabled"),
                ("warning", "/a", ""),
            ]
            logs.clear()
            clock.now = 59.9
            await post(f"{url}/off")
            assert requested(logs) == []
            clock.now = 60
            await post(f"{url}/off")
            await post(f"{url}/b")
            assert requested(logs) == [("warning", "/off", "webhooks.off.enabled"), ("warning", "/b", "")]


class Shown:
    """A connection on which this certificate was shown."""

    def __init__(self, *names: str) -> None:
        self._certificate = {"subject": tuple((("commonName", name),) for name in names)} if names else {}

    def get_extra_info(self, name: str) -> object:
        assert name == "peercert"
        return self._certificate


@pytest.mark.parametrize(
    ("permitted", "shown", "known"),
    [
        ((), Shown("anybody"), True),
        ((), Shown(), False),
        ((), None, False),
        (("api",), Shown("api"), True),
        (("api", "other"), Shown("x", "other"), True),
        (("api",), Shown("kubelet"), False),
        (("api",), Shown(), False),
    ],
)
def test_clients_are_known_by_the_names_in_their_certificates(
    permitted: tuple[str, ...], shown: Any, known: bool
) -> None:
    assert Clients(permitted).knows(shown) is known


async def test_without_a_certificate_only_public_paths_answer() -> None:
    requests = Requests({"/echo": echo, "/public": echo}, clients=Clients(("api",)), public=("/public",))
    async with serving(requests) as url:
        answers = [await post(url + path) for path in ("/echo", "/nothing")]
        assert [answer[:2] for answer in answers] == [(401, b"401 unauthorized\n")] * 2
        assert (await post(f"{url}/public"))[0] == 200
