"""Serve `/metrics`, further pages of a program, and `/debug/pprof` when profiling is on.

All metrics live in prometheus_client's default registry, next to its collectors for the process (`process_*`) and the
interpreter. Exposition is plain text or OpenMetrics as the scraper requests, compressed if it accepts gzip.

The profiling endpoints have the paths of the original but contain data that Python can report: a deterministic profile
of the event loop's thread, and the stacks of all tasks.
"""

import asyncio
import gzip
import hashlib
import io
from collections.abc import Mapping
from types import MappingProxyType

from aiohttp import web
from prometheus_client import Gauge, disable_created_metrics
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import REGISTRY, CollectorRegistry

from process.memory import memory_limit
from process.server import Handler, HttpServer

_MAX_PROFILE_SECONDS = 60.0

_PPROF_INDEX = """\
/debug/pprof/

Profiling of a Python process; the answers are text, not the format of Go's pprof tool.

profile?seconds=N  functions by time spent in the event loop's thread during N seconds (default 30, at most 60);
                   slows this process down while it runs
trace              where every task stands now
symbol             not available
"""


def _tasks() -> float:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # called from outside the event loop
        return 0.0


asyncio_tasks = Gauge("asyncio_tasks", "Number of tasks of the event loop.")
asyncio_tasks.set_function(_tasks)


def describe_process(
    *, version: str, configuration: bytes, prefix: str, registry: CollectorRegistry = REGISTRY
) -> None:
    """Set the metrics that distinguish replicas: their version and a hash of the effective configuration.

    The configuration has to be in a stable form; its hash is 48 bits, exact in a float.
    """
    # The creation time of each counter and histogram: a third more series that no dashboard reads.
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the library left it without annotations
    build_info = Gauge(f"{prefix}_build_info", "Always 1; labels describe the build.", ["version"], registry=registry)
    build_info.labels(version=version).set(1)
    config_hash = Gauge(
        f"{prefix}_config_hash",
        "Hash of the effective configuration; equal for all replicas of a rollout.",
        registry=registry,
    )
    limit = Gauge(
        f"{prefix}_memory_limit_bytes", "Memory limit of the container in bytes; +Inf: no limit.", registry=registry
    )
    limit.set_function(memory_limit)
    config_hash.set(int.from_bytes(hashlib.sha256(configuration).digest()[:6], "big"))


class MetricsHandler:
    """Answers scrapes and, if allowed, profiling requests.

    Args: pages: further pages, by the first part of the path.
    """

    def __init__(
        self,
        *,
        profiling: bool = False,
        pages: Mapping[str, Handler] = MappingProxyType({}),
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._profiling, self._pages = profiling, pages
        self._registry = registry
        self._profile_running = False

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if page := self._pages.get(request.path.split("/")[1]):
            return await page(request)
        if request.method not in {"GET", "HEAD"}:
            return web.Response(status=405, text="method not allowed\n")
        if request.path == "/metrics":
            return self._scrape(request)
        if self._profiling and request.path.startswith("/debug/pprof"):
            return await self._debug(request)
        return web.Response(status=404, text="404 page not found\n")

    def _scrape(self, request: web.BaseRequest) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        body = encode(self._registry)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        if gzip_accepted(request.headers.get("Accept-Encoding", "")):
            body = gzip.compress(body, compresslevel=5, mtime=0)
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=body, headers=headers)

    async def _debug(self, request: web.BaseRequest) -> web.Response:
        match request.path.removeprefix("/debug/pprof"):
            case "":
                return web.Response(status=302, headers={"Location": "/debug/pprof/"})
            case "/":
                return web.Response(text=_PPROF_INDEX)
            case "/profile":
                return await self._profile(request.query.get("seconds", "30"))
            case "/trace":
                return web.Response(text=_task_stacks())
            case "/symbol":
                return web.Response(status=501, text="not available: profiles here hold names, not addresses\n")
            case _:
                return web.Response(status=404, text="404 page not found\n")

    async def _profile(self, seconds_text: str) -> web.Response:
        try:
            seconds = float(seconds_text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= _MAX_PROFILE_SECONDS:
            limit = f"seconds must be a number above 0 and at most {_MAX_PROFILE_SECONDS:.0f}\n"
            return web.Response(status=400, text=limit)
        if self._profile_running:
            return web.Response(status=409, text="another profile is being taken; try again later\n")
        self._profile_running = True
        try:
            return web.Response(text=await _take_profile(seconds))
        finally:
            self._profile_running = False


async def _take_profile(seconds: float) -> str:
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.enable()
    try:
        await asyncio.sleep(seconds)
    finally:
        profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(100)
    return text.getvalue()


def _task_stacks() -> str:
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        text.write(f"{task.get_name()}:\n")
        task.print_stack(limit=20, file=text)
        text.write("\n")
    return text.getvalue()


def metrics_server(
    *, host: str, port: int, profiling: bool = False, pages: Mapping[str, Handler] = MappingProxyType({})
) -> HttpServer:
    """Return the metrics server, not yet bound."""
    handler = MetricsHandler(profiling=profiling, pages=pages)
    return HttpServer("metrics", handler, host=host, port=port, max_connections=32)
