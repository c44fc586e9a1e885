"""A server that answers instant queries as Prometheus does, in a test's own process.

async with prometheus() as server:
    server.samples = {"seed-a": "12.5"}
    ...
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from kube.objects import Object


@dataclass
class PrometheusServer:
    """Attributes: samples: values by Seed; body: what is answered instead; queries: what was queried."""

    url: str = ""
    samples: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.time
    queries: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.queries.append(request.query["query"])
        if self.body is not None:
            return web.Response(body=self.body, status=self.status, headers=self.headers)
        if self.status != 200:
            wrong = {"status": "error", "errorType": "execution", "error": "no luck"}
            return web.json_response(wrong, status=self.status, headers=self.headers)
        return web.json_response(vector(self.samples, at=self.clock()))


def vector(samples: Mapping[str, str], *, at: float) -> Object:
    """What the query reports at a time, in seconds since the epoch."""
    result = [{"metric": {"seed": seed}, "value": [at, value]} for seed, value in samples.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@asynccontextmanager
async def prometheus() -> AsyncIterator[PrometheusServer]:
    server, app = PrometheusServer(), web.Application()
    app.router.add_get("/prometheus/api/v1/query", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}/prometheus"
        yield server
    finally:
        await runner.cleanup()
