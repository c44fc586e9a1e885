"""HTTP servers of the product in a test's own process, and clients of them."""

import contextlib
from collections.abc import AsyncIterator
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


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()
