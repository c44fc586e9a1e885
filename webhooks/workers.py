"""Several processes that serve webhooks at one socket, so that more than one core does.

The first process binds the socket and forks the workers, which accept from it side by side; then it closes its own
copy and is left with `/metrics`, `/healthz` and `/readyz`, for all of them as one. It asks each worker over a socket
pair, see `webhooks.worker_channel`.

A worker that ends for a reason of its own ends the program, and the end of the first process ends the workers: there
is nothing here that starts anything again, since Kubernetes does.
"""

import asyncio
import contextlib
import gc
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Never

from aiohttp import web
from prometheus_client import REGISTRY
from prometheus_client.registry import CollectorRegistry

from process.metrics import MetricsHandler
from process.probes import CheckFailed, HealthCheck, probe_server
from process.runner import Groups, run_process
from process.server import HttpServer
from webhooks.app import HEALTHZ, READYZ, SERVING, Setup, compose_serving, take_address
from webhooks.merged_metrics import MergedMetrics, families_of
from webhooks.worker_channel import Answers, ChannelClosed, Questions

_LOOK_SECONDS = 0.1


def run_workers(setup: Setup, count: int) -> Never:
    """Becomes the first process, and its workers.

    Must be called before there are threads or an event loop.

    Raises:
        OSError: the address of the webhooks is taken.
    """
    listening = take_address(setup.config)
    # Collecting garbage writes to objects; those that are frozen stay in memory that all processes share.
    gc.freeze()
    pairs = [socket.socketpair() for _ in range(count)]
    workers = [
        Worker(number, _fork(setup, listening, theirs, pairs), ours) for number, (ours, theirs) in enumerate(pairs, 1)
    ]
    for _, theirs in pairs:
        theirs.close()
    listening.close()
    run_process(partial(_compose_first, setup, workers), grace_period=setup.config.graceful_shutdown_timeout)


def _fork(
    setup: Setup, listening: socket.socket, channel: socket.socket, pairs: Iterable[tuple[socket.socket, socket.socket]]
) -> int:
    """The id of a new worker, which does not return from here."""
    if pid := os.fork():
        return pid
    # What a terminal sends to all processes of a program is for the first one alone.
    os.setpgid(0, 0)
    # As long as somebody else holds the other end of a channel, its end can't be seen.
    for each in (end for pair in pairs for end in pair if end is not channel):
        each.close()
    compose = partial(_compose_worker, setup, listening, channel)
    return run_process(compose, grace_period=setup.config.graceful_shutdown_timeout)


async def _compose_worker(setup: Setup, listening: socket.socket, channel: socket.socket) -> Groups:
    serving = compose_serving(setup, listening)
    answers = Answers(channel, healthz=serving.healthz, readyz=serving.readyz)
    return [[*serving.first, answers], *serving.groups]


async def _compose_first(setup: Setup, workers: Sequence["Worker"]) -> Groups:
    config = setup.config
    metrics, probes = config.server.metrics, config.server.health_probes
    servers = [
        HttpServer("metrics", _scrapes(workers), host=metrics.bind_address, port=metrics.port, max_connections=32),
        probe_server(
            healthz=[_check_of_all("healthz", name, workers) for name in HEALTHZ],
            readyz=[_check_of_all("readyz", name, workers) for name in READYZ],
            host=probes.bind_address,
            port=probes.port,
        ),
    ]
    for server in servers:
        server.bind()
    return [servers, workers]


def _check_of_all(endpoint: str, name: str, workers: Sequence["Worker"]) -> HealthCheck:
    """Fails when that of any worker does."""

    async def run() -> None:
        reasons = await asyncio.gather(*(worker.failure(endpoint, name) for worker in workers))
        for worker, reason in zip(workers, reasons, strict=True):
            if reason:
                raise CheckFailed(f"{worker.name}: {reason}")

    return HealthCheck(name, run)


def _scrapes(workers: Sequence["Worker"]) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
    metrics = MergedMetrics()
    registry = CollectorRegistry()
    registry.register(metrics)
    handler = MetricsHandler(registry=registry)

    async def scrape(request: web.BaseRequest) -> web.Response:
        try:
            counted = await asyncio.gather(*(worker.questions.metrics() for worker in workers))
        except ChannelClosed:
            return web.Response(status=503, text="workers are starting or ending\n")
        metrics.update([families_of(REGISTRY), *counted])
        return await handler(request)

    return scrape


class WorkerEnded(Exception):
    """A worker is gone, and nobody asked it to."""


class Worker:
    """A worker, as the first process sees it: a component that is ready when the worker serves."""

    def __init__(self, number: int, pid: int, channel: socket.socket) -> None:
        self.name = f"worker {number}"
        self.questions = Questions(channel)
        self._pid = pid
        self._exit: asyncio.Future[int] | None = None
        self._stopping = False

    async def start(self) -> None:
        """Raises: WorkerEnded."""
        await self.questions.open()
        while await self.failure("readyz", SERVING):
            if self._ended().done():
                await self.wait()
            await asyncio.sleep(_LOOK_SECONDS)

    async def wait(self) -> None:
        """Raises: WorkerEnded."""
        code = await asyncio.shield(self._ended())
        if not self._stopping:
            raise WorkerEnded(f"{self.name} (process {self._pid}) ended with exit code {code}")

    async def stop(self) -> None:
        self._stopping = True
        if not self._ended().done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)
        await asyncio.shield(self._ended())

    def _ended(self) -> asyncio.Future[int]:
        """The exit code."""
        if self._exit is None:
            self._exit = asyncio.ensure_future(asyncio.to_thread(_exit_code, self._pid))
        return self._exit

    async def failure(self, endpoint: str, check: str) -> str:
        """Why a health check of the worker fails, empty if it does not."""
        try:
            return await self.questions.failure(endpoint, check)
        except ChannelClosed as error:
            return str(error)


def _exit_code(pid: int) -> int:
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
