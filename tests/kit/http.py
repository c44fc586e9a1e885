"""HTTP servers of the product in a test's own process, and clients of them."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp

from process.server import Handler, HttpServer


@contextlib.asynccontextmanager
async def serving(handler: Handler, *, host: str = "127.0.0.1", **settings: Any) -> AsyncIterator[HttpServer]:
    """At a port of its own; the settings are those of `HttpServer`."""
    server = HttpServer("probes", handler, host=host, port=0, **settings)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def get(url: str, **options: Any) -> tuple[int, str]:
    """Status and body. Args: options: those of `aiohttp.ClientSession.request`."""
    status, body, _ = await ask("GET", url, **options)
    return status, body.decode()


async def ask(method: str, url: str, **options: Any) -> tuple[int, bytes, Mapping[str, str]]:
    """Status, body and headers."""
    async with aiohttp.ClientSession() as session, session.request(method, url, **options) as answer:
        return answer.status, await answer.read(), answer.headers
