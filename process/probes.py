"""Liveness and readiness over HTTP: `/healthz`, `/readyz`, and single checks below them.

Bodies are those of the original, since users and scripts read them. An aggregate answers `ok`; with `?verbose`, or when
a check fails, it lists all checks but withholds reasons, because the endpoint is public. The reason is in the log and
in the response of the single check.

Probes must stay cheap and quick: a check has a time limit, and probes that arrive while it runs share its result.

Liveness covers whether this process can answer, and checks that its program adds. It excludes problems that a restart
does not repair, above all an unreachable API server: that would stop all replicas at once, and another cluster needs
those of the webhooks.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aiohttp import web

from kube.clock import format_duration
from kube.visible_text import printable
from process.logging import get_logger
from process.redaction import error_text
from process.server import HttpServer

Clock = Callable[[], float]


class CheckFailed(Exception):
    """The check failed; the text is the reason."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A named check; `run` raises any exception, whose text is the reason."""

    name: str
    run: Callable[[], Awaitable[None]]


Checks = Sequence[HealthCheck] | Callable[[], Iterable[HealthCheck]]


# --- checks


async def _always_good() -> None:
    pass


PING = HealthCheck("ping", _always_good)


def cached(check: HealthCheck, *, timeout: float = 4.0, clock: Clock = time.monotonic) -> HealthCheck:
    """Return the same check, run at most once in five seconds, with a time limit for each run."""
    shared = _SharedRun(check, timeout=timeout, keep=5.0, clock=clock)

    async def run() -> None:
        reason = await shared.reason()
        if reason is not None:
            raise CheckFailed(reason)

    return HealthCheck(check.name, run)


def informer_sync(name: str, problem: Callable[[], str]) -> HealthCheck:
    """Return the check that the watches that this process needs of a cluster are complete and current."""

    async def run() -> None:
        if reason := problem():
            raise CheckFailed(reason)

    return HealthCheck(name, run)


class _SharedRun:
    """Runs a check so that simultaneous callers share one run, and its result is kept for a while."""

    def __init__(self, check: HealthCheck, *, timeout: float, keep: float = 0.0, clock: Clock = time.monotonic) -> None:
        self._check = check
        self._timeout = timeout
        self._keep = keep
        self._clock = clock
        self._running: asyncio.Task[str | None] | None = None
        self._result: tuple[float, str | None] | None = None

    async def reason(self) -> str | None:
        """Return the reason of a failure; None if the check passes."""
        if self._result is not None and self._clock() - self._result[0] < self._keep:
            return self._result[1]
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run(), name=f"health check {self._check.name}")
        # A caller that disconnects must not end the run for the others.
        return await asyncio.shield(self._running)

    async def _run(self) -> str | None:
        reason = None
        try:
            async with asyncio.timeout(self._timeout) as limit:
                await self._check.run()
        except TimeoutError as error:
            reason = f"no result within {format_duration(self._timeout)}" if limit.expired() else error_text(error)
        except Exception as error:  # noqa: BLE001 - any error of a check is its reason
            reason = error_text(error)
        self._result = (self._clock(), reason)
        return reason


# --- responses


class CheckStatus(NamedTuple):
    name: str
    healthy: bool
    excluded: bool = False


def render_aggregate(
    statuses: Iterable[CheckStatus], *, verbose: bool = False, unknown_excludes: Sequence[str] = ()
) -> tuple[int, str]:
    """Return HTTP status and body for all checks of one endpoint."""
    ordered = sorted(statuses)
    failed = any(not status.healthy for status in ordered)
    if not failed and not verbose:
        return 200, "ok"
    lines = []
    for status in ordered:
        if status.excluded:
            lines.append(f"[+]{status.name} excluded: ok\n")
        elif status.healthy:
            lines.append(f"[+]{status.name} ok\n")
        else:
            lines.append(f"[-]{status.name} failed: reason withheld\n")
    if unknown_excludes:
        names = ", ".join(f'"{name}"' for name in unknown_excludes)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
    lines.append(f"healthz check {'failed' if failed else 'passed'}\n")
    return (500 if failed else 200), "".join(lines)


class ProbeHandler:
    """Answers probes: `handler(path, …)` for each endpoint such as `/readyz`.

    Args: endpoints: checks, or a function that returns the current ones; a name denotes the same check as long as it is
    present.
    """

    def __init__(self, endpoints: Mapping[str, Checks], *, timeout: float = 10.0) -> None:
        self._endpoints = endpoints
        self._timeout = timeout
        self._shared: dict[str, dict[str, _SharedRun]] = {path: {} for path in endpoints}
        self._log = get_logger("healthz")

    def _checks(self, path: str) -> dict[str, _SharedRun]:
        checks, known = self._endpoints[path], self._shared[path]
        self._shared[path] = found = {
            check.name: known.get(check.name) or _SharedRun(check, timeout=self._timeout)
            for check in (checks() if callable(checks) else checks)
        }
        return found

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        if request.method not in {"GET", "HEAD"}:
            return _plain(405, "method not allowed\n")
        for path in self._endpoints:
            if request.path.rstrip("/") == path:
                verbose, excludes = "verbose" in request.query, request.query.getall("exclude", [])
                return _plain(*await self._aggregate(self._checks(path), verbose, excludes))
            if request.path.startswith(f"{path}/"):
                return _plain(*await self._single(self._checks(path).get(request.path.removeprefix(f"{path}/"))))
        return _plain(404, "404 page not found\n")

    async def _aggregate(
        self, checks: dict[str, _SharedRun], verbose: bool, excludes: Sequence[str]
    ) -> tuple[int, str]:
        names = [name for name in checks if name not in excludes]
        reasons = await asyncio.gather(*(checks[name].reason() for name in names))
        failures = {name: reason for name, reason in zip(names, reasons, strict=True) if reason is not None}
        if failures:
            self._log.info("healthz check failed", checks=failures)
        statuses = [CheckStatus(name, name not in failures, excluded=name in excludes) for name in checks]
        unknown = sorted({name for name in excludes if name not in checks})
        return render_aggregate(statuses, verbose=verbose, unknown_excludes=unknown)

    async def _single(self, check: _SharedRun | None) -> tuple[int, str]:
        if check is None:
            return 404, "404 page not found\n"
        reason = await check.reason()
        return (200, "ok") if reason is None else (500, f"internal server error: {printable(reason)}\n")


def _plain(status: int, text: str) -> web.Response:
    headers = {"X-Content-Type-Options": "nosniff"}
    return web.Response(status=status, text=text, content_type="text/plain", charset="utf-8", headers=headers)


def probe_server(*, healthz: Sequence[HealthCheck] = (), readyz: Checks, host: str, port: int) -> HttpServer:
    """Return the health-probe server, not yet bound."""
    handler = ProbeHandler({"/healthz": [PING, *healthz], "/readyz": readyz})
    return HttpServer("health probes", handler, host=host, port=port)
