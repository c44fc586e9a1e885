"""NetworkPolicies of many Services in many namespaces: cost of converging, and of a change after that."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from benchmarks import report
from benchmarks.measuring import Meter, News, connected, running
from benchmarks.program import Agent
from benchmarks.report import Table, number
from benchmarks.workload import each_of
from gardener.keys import NAMESPACE_SELECTORS
from kube.objects import Key, Object, uid
from kube.resources import NAMESPACES, NETWORK_POLICIES, SERVICES
from kube.runtime.cache import Caches, View
from kube.runtime.client import Client, Form

CONTROLLERS = {"networkPolicy": {"enabled": True}}
_LABELS = {"client": "x"}
_COLUMNS = ("what", "policies", "s", "calls", "CPU s", "RSS (peak) MiB")
_PATIENCE_SECONDS = 900.0


class Policies(News):
    """All existing policies."""

    def __init__(self, caches: Caches) -> None:
        super().__init__()
        self._store = caches.acquire(View(NETWORK_POLICIES, uid, form=Form.METADATA))
        self._store.subscribe(self.notify)

    async def are(self, count: int, *, among_them: Key | None = None, within: float = _PATIENCE_SECONDS) -> float:
        """Return the time when there are exactly `count` policies."""
        await self._store.synced.wait()
        return await self.until(
            lambda: len(self._store) == count and (among_them is None or self._store.get(among_them) is not None),
            what=f"{count} policies",
            within=within,
            explain=lambda: f"; there were {len(self._store)}",
        )


def namespace(name: str, *, is_client: bool = True) -> Object:
    """Namespace; `is_client`: Services open to others let in its pods."""
    return {"metadata": {"name": name, "labels": _LABELS if is_client else {}}}


def service(name: str, of: str, *, is_open: bool = True) -> Object:
    """Service of one port in the namespace `of`."""
    marks = {NAMESPACE_SELECTORS: json.dumps([{"matchLabels": _LABELS}])} if is_open else {}
    return {
        "metadata": {"name": name, "namespace": of, "annotations": marks},
        "spec": {"clusterIP": "None", "selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]},
    }


async def measure(*, namespaces: int, services: int, open_services: int, rest: float) -> Table:
    """Measure with Services spread over the namespaces; the open ones let in clients of all namespaces."""
    async with running(controllers=CONTROLLERS) as (cluster, agent, audit), connected(cluster) as (client, caches):
        policies = Policies(caches)

        def namespace_of(number: int) -> str:
            return f"bench-{number % namespaces}"

        def service_of(number: int) -> Object:
            return service(f"s-{number}", namespace_of(number), is_open=number < open_services)

        await each_of(range(namespaces), lambda i: client.create(NAMESPACES, namespace(namespace_of(i))))
        await each_of(range(services), lambda i: client.create(SERVICES, service_of(i)))
        phases = _Phases(client, policies, agent, Meter(agent, audit))
        pairs = services + open_services * (namespaces - 1)
        last = f"s-{services - 1}", namespace_of(services - 1)
        rows = [row async for row in phases.rows(pairs, pairs + open_services, last, rest)]
    shape = f"{services} Services in {namespaces} namespaces, {open_services} of them open to all of these"
    note = f"{shape}; one port each. Policies: at the end of a phase."
    return Table("Network policies", _COLUMNS, rows, [note])


class _Phases:
    def __init__(self, client: Client, policies: Policies, agent: Agent, meter: Meter) -> None:
        self._client, self._policies, self._agent, self._meter = client, policies, agent, meter

    async def rows(self, pairs: int, grown: int, last: tuple[str, str], rest: float) -> AsyncIterator[tuple[str, ...]]:
        """Measure; `pairs` and `grown` are pairs of policies, without and with one more namespace, `last` a Service."""
        client, (name, of) = self._client, last
        ports = {"spec": {"ports": [{"port": 80, "targetPort": 9}]}}
        label = {"metadata": {"labels": {"unrelated": "x"}}}
        yield await self._row("from nothing", self._start, pairs, fresh=True)
        yield await self._row(f"{rest:.0f} s idle", lambda: asyncio.sleep(rest), pairs)
        yield await self._row("a namespace more", lambda: client.create(NAMESPACES, namespace("bench-more")), grown)
        yield await self._row("a namespace relabelled", lambda: client.patch(NAMESPACES, "bench-1", label), grown)
        yield await self._row(
            "a Service's port changed",
            lambda: client.patch(SERVICES, Key(of, name), ports),
            grown,
            among_them=Key(of, f"ingress-to-{name}-tcp-9"),
        )
        await asyncio.to_thread(self._agent.stop)
        yield await self._row("restart", self._start, grown, fresh=True)

    async def _start(self) -> None:
        self._agent.start()
        await asyncio.to_thread(self._agent.wait_until_ready)

    async def _row(
        self,
        what: str,
        act: Callable[[], Awaitable[object]],
        pairs: int,
        *,
        among_them: Key | None = None,
        fresh: bool = False,
    ) -> tuple[str, ...]:
        """Act, wait for the policies, and return the cost for the agent."""
        self._meter.start(fresh=fresh)
        await act()
        at = await self._policies.are(2 * pairs, among_them=among_them)
        phase = await self._meter.stop(what, at=at)
        cells = number(phase.seconds, 2), report.calls(phase.calls), number(phase.cpu, 2), phase.memory
        return what, str(2 * pairs), *cells
