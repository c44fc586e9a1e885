"""Watches that begin with all that there is, requested from an API server that can't do that."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from multidict import CIMultiDict

from kube.errors import Invalid
from kube.resources import CONFIG_MAPS, PODS, SECRETS, Resource
from kube.runtime.client import Client, RoundTripper, Selection


class Answer:
    def __init__(self, status: int) -> None:
        self.content, self.status, self.headers = self, status, CIMultiDict[str]()

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield b'{"kind":"Status","reason":"Invalid","message":"sendInitialEvents is forbidden"}'


class Server:
    """Answers after a moment."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.requested: list[str] = []

    @contextlib.asynccontextmanager
    async def send(self, _method: str, path: str, **_options: Any) -> AsyncIterator[Answer]:
        self.requested.append(path)
        await asyncio.sleep(0)
        yield Answer(self.status)


async def begin(client: Client, resource: Resource, *, since: str = "") -> None:
    async with client.watch(resource, Selection(), resource_version=since, timeout_seconds=1, idle_timeout=1.0):
        pass


async def test_one_refusal_is_enough_for_all_kinds() -> None:
    server = Server(422)
    client = Client(cast("RoundTripper", server), user_agent="test")
    begun = [begin(client, each) for each in (CONFIG_MAPS, PODS, SECRETS)]
    outcomes = await asyncio.gather(*begun, return_exceptions=True)
    assert all(isinstance(outcome, Invalid) for outcome in outcomes)
    with pytest.raises(Invalid):
        await begin(client.impersonating("ann"), PODS)
    assert server.requested == [CONFIG_MAPS.path()]


async def test_who_knows_where_to_begin_is_not_held_up() -> None:
    server = Server(422)
    client = Client(cast("RoundTripper", server), user_agent="test")
    with pytest.raises(Invalid):
        await begin(client, CONFIG_MAPS)
    with pytest.raises(Invalid):
        await begin(client, PODS, since="5")
    assert server.requested == [CONFIG_MAPS.path(), PODS.path()]


async def test_each_kind_is_requested_from_an_api_server_that_can() -> None:
    server = Server(200)
    client = Client(cast("RoundTripper", server), user_agent="test")
    await asyncio.gather(*(begin(client, each) for each in (CONFIG_MAPS, PODS)))
    assert server.requested == [CONFIG_MAPS.path(), PODS.path()]
