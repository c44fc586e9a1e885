"""What goes wrong between agents or webhooks and an API server."""

import contextlib
from collections.abc import AsyncIterator, Callable

from campaign.stage import Stage
from devcluster.testing.faults import (
    Delay,
    EndWatch,
    LateEvents,
    RepeatEvents,
    Reset,
    Rule,
    Silence,
    Trickle,
    WatchEnd,
    expired,
    internal_error,
    throttled,
    unauthorized,
    unavailable,
)

_WRITES = ("POST", "PUT", "PATCH", "DELETE")
RULES = {
    "internal-error": Rule(fault=internal_error(), probability=0.2, watch=False),
    "internal-error-carried-out": Rule(fault=internal_error(carried_out=True), probability=0.3, methods=_WRITES),
    "unavailable": Rule(fault=unavailable(), probability=0.3, watch=False),
    "unavailable-carried-out": Rule(fault=unavailable(carried_out=True), probability=0.3, methods=_WRITES),
    "throttled": Rule(fault=throttled(retry_after=1), probability=0.2),
    "unauthorized": Rule(fault=unauthorized(), probability=0.2),
    "expired": Rule(fault=expired(), probability=0.5, methods=("GET",)),
    "reset": Rule(fault=Reset(), probability=0.2),
    "reset-carried-out": Rule(fault=Reset(carried_out=True), probability=0.3, methods=_WRITES),
    "silence": Rule(fault=Silence(), probability=0.1, times=10),
    "silence-carried-out": Rule(fault=Silence(carried_out=True), probability=0.1, times=10, methods=_WRITES),
    "delay": Rule(fault=Delay(seconds=1.0), probability=0.5),
    "trickle": Rule(fault=Trickle(size=512, pause=0.01), probability=0.5),
    "late-events": Rule(fault=LateEvents(seconds=1.0)),
    "repeated-events": Rule(fault=RepeatEvents()),
    **{how.value: Rule(fault=EndWatch(how=how, after_events=3), probability=0.7) for how in WatchEnd},
}
_SILENT = {"silence", "silence-carried-out", WatchEnd.SILENT.value}


@contextlib.asynccontextmanager
async def requests_fail(stage: Stage, *, cluster: str, trouble: str) -> AsyncIterator[Callable[[], str]]:
    proxy, rule = stage.proxies[cluster], RULES[trouble]
    before = proxy.injected[rule.fault.name]
    # For those that are open, too: watches come again.
    proxy.end_watches(WatchEnd.CLOSED)
    proxy.rules.add(rule)
    try:
        yield lambda: f"{proxy.injected[rule.fault.name] - before} times"
    finally:
        proxy.rules.remove(rule)
        if trouble in _SILENT:
            # The client would find out by itself after minutes; a router that forgets connections is faster.
            proxy.drop_all_connections()


@contextlib.asynccontextmanager
async def unreachable(stage: Stage, *, cluster: str) -> AsyncIterator[None]:
    proxy = stage.proxies[cluster]
    await proxy.pause()
    try:
        yield
    finally:
        await proxy.resume()


@contextlib.asynccontextmanager
async def connections_dropped(stage: Stage, *, cluster: str) -> AsyncIterator[None]:
    stage.proxies[cluster].drop_all_connections()
    yield


@contextlib.asynccontextmanager
async def watches_end(stage: Stage, *, cluster: str, how: str) -> AsyncIterator[str]:
    proxy = stage.proxies[cluster]
    count = proxy.end_watches(WatchEnd(how))
    try:
        yield f"{count} watches"
    finally:
        if how in _SILENT:
            proxy.drop_all_connections()
