"""What takes long gives others on the event loop their turns."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from kube.objects import Object
from kube.resources import CONFIG_MAPS
from kube.runtime import yielding
from kube.runtime.answers import loads as loads_answer
from kube.runtime.cache import Store, View, _feed, without_managed_fields
from kube.runtime.client import Client, Selection
from kube.runtime.connection import Connection, Fixed
from kube.runtime.transport import Transport
from kube.runtime.watch import Event, ListBegins, ListEnds, Present
from process.server import HttpServer, read_body

ITEMS = 40


class Others:
    """Another client on the event loop, who counts how often it is their turn."""

    def __init__(self) -> None:
        self.turns = 0

    async def run(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


@pytest.fixture
def everything_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yielding, "_LONG_SECONDS", -1.0)


def config_map(number: int) -> Object:
    meta = {"name": f"m{number}", "namespace": "n", "resourceVersion": str(number + 1)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": "x" * (40 << 10)}}


@pytest.mark.usefixtures("everything_takes_long")
async def test_others_get_their_turns_between_the_objects_that_a_watch_yields() -> None:
    others = Others()
    counting = asyncio.create_task(others.run())
    ended = asyncio.Event()
    seen: list[int] = []

    class Watcher:
        async def events(self) -> AsyncIterator[Event]:
            yield ListBegins(ITEMS)
            for number in range(ITEMS):
                yield Present(config_map(number))
            seen.append(others.turns)
            yield ListEnds(ITEMS)
            ended.set()
            await asyncio.Event().wait()

    store = Store(View(CONFIG_MAPS, without_managed_fields))
    feeding = asyncio.create_task(_feed(store.source(""), Watcher()))  # type: ignore[arg-type]
    await asyncio.wait_for(ended.wait(), 60)
    assert len(store) == ITEMS
    assert seen[0] >= ITEMS
    for task in counting, feeding:
        task.cancel()


class Answering:
    """Whatever is queried, the answer is the same, and the body of the question is kept."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.requested = b""
        self.length: int | None = None

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        self.length = request.content_length
        self.requested = await read_body(request, most=8 << 20)
        return web.Response(body=self.answer, content_type="application/json")


async def requested(answering: Answering, ask: Callable[[Client], Awaitable[Object]]) -> Object:
    server = HttpServer("fake", answering, host="127.0.0.1", max_buffered=16 << 20)
    await server.start()
    url = f"http://127.0.0.1:{server.port}"
    try:
        async with Transport(Connection(server=url, tls=None, credentials=Fixed(), identity=(url,))) as transport:
            return await ask(Client(transport, user_agent="test"))
    finally:
        await server.stop()


@pytest.mark.usefixtures("everything_takes_long")
async def test_a_large_list_is_decoded_item_after_item(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [config_map(number) for number in range(ITEMS)]
    page = {"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7", "continue": "c"}}
    decoded: list[int] = []
    loads = orjson.loads

    def measured(text: bytes) -> Any:
        decoded.append(len(text))
        return loads(text)

    monkeypatch.setattr("kube.runtime.answers.orjson.loads", measured)
    found = await requested(
        Answering(orjson.dumps({**page, "items": items})), lambda client: client.list_page(CONFIG_MAPS, Selection())
    )
    assert found["items"] == items
    assert found["metadata"] == page["metadata"]
    assert max(decoded) < 50 << 10


def test_a_large_object_is_not_looked_through_for_garbage_while_it_is_made() -> None:
    body = orjson.dumps({"spec": [{"a": {"b": [{}]}} for _ in range(50_000)]})
    rounds: list[str] = []

    def count(phase: str, _: object) -> None:
        rounds.append(phase)

    gc.callbacks.append(count)
    try:
        loads_answer(body)
    finally:
        gc.callbacks.remove(count)
    assert rounds.count("start") <= 1
    assert gc.isenabled()


async def test_a_large_body_arrives_whole_and_with_its_length() -> None:
    obj = {"kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}, "data": {"k": "x" * (3 << 20)}}
    answering = Answering(orjson.dumps({"apiVersion": "v1", "kind": "ConfigMap"}))
    await requested(answering, lambda client: client.replace(CONFIG_MAPS, obj))
    assert answering.requested == orjson.dumps(obj)
    assert answering.length == len(answering.requested)
