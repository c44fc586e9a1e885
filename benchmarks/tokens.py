"""Tokens of many ServiceAccounts: requested, kept over a restart, and renewed over a whole lifetime."""

import asyncio
import collections
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from benchmarks.program import USER_AGENT, Agent
from benchmarks.report import Table, calls, number
from benchmarks.workload import create_namespace, install_crd
from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError
from gardener import keys
from kube.client import Client, Selection, Transport
from kube.clock import parse_time
from kube.connection import load_kubeconfig
from kube.objects import Object, annotations
from kube.resources import SECRETS

_NAMESPACE = "tokens"
_AT_ONCE = 50
_LIFETIME = "10m"
_RENEWED_SECONDS = 510.0
"""Tokens of ten minutes are renewed between 8m and 8m24s."""
_QUIET_SECONDS = 5.0
_PATIENCE_SECONDS = 900.0
_COLUMNS = (
    "what",
    "TokenRequests",
    "for each",
    "spread over s",
    "most in 1 s",
    "s",
    "calls",
    "CPU s",
    "RSS (peak) MiB",
)


async def measure(*, secrets: int, renewal: bool) -> Table:
    """Args: renewal: whether to wait until all tokens were renewed, which takes nine minutes."""
    async with Cluster() as cluster, Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        client = Client(transport, user_agent="benchmark")
        await asyncio.to_thread(install_crd, cluster)
        await create_namespace(client, _NAMESPACE)
        await _create(client, secrets)
        controllers = {"tokenRequestor": {"enabled": True}}
        audit = cluster.audit()
        try:
            with (
                tempfile.TemporaryDirectory() as directory,
                Agent(cluster, Path(directory), controllers=controllers) as agent,
            ):
                rows = await _Run(client, audit, agent, secrets).rows(renewal=renewal)
        finally:
            audit.close()
    note = f"One Secret each; tokens are valid for {_LIFETIME}. CPU from the start of the process."
    return Table(f"Tokens of {secrets} ServiceAccounts", _COLUMNS, rows, [note])


class _Run:
    def __init__(self, client: Client, audit: Audit, agent: Agent, secrets: int) -> None:
        self._client = client
        self._audit = audit
        self._agent = agent
        self._secrets = secrets

    async def rows(self, *, renewal: bool) -> list[tuple[str, ...]]:
        rows = [await self._row("from nothing", self._issue)]
        if renewal:
            rows.append(await self._row("until all are renewed", self._renewed))
        rows.append(await self._row("a restart", self._restart))
        return rows

    async def _row(self, name: str, work: Callable[[], Awaitable[None]]) -> tuple[str, ...]:
        mark = self._audit.mark()
        began = time.monotonic()
        await work()
        seconds = time.monotonic() - began
        made = await asyncio.to_thread(self._audit.calls, since=mark, user_agent=USER_AGENT)
        counts = collections.Counter((call.verb, call.resource) for call in made)
        memory = f"{self._agent.resident_mib():.0f} ({self._agent.peak_mib():.0f})"
        requests = _requests([call for call in made if call.resource == "serviceaccounts/token"], self._secrets)
        return name, *requests, number(seconds), calls(counts), number(self._agent.cpu_seconds()), memory

    async def _issue(self) -> None:
        self._agent.start()
        await asyncio.to_thread(self._agent.wait_until_ready)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while await self._with_token() < self._secrets:
            self._agent.check()
            if time.monotonic() > deadline:
                raise DevclusterError(f"not all Secrets have a token; {self._agent.log_end()}")
            await asyncio.sleep(0.5)

    async def _renewed(self) -> None:
        await asyncio.sleep(_RENEWED_SECONDS)
        self._agent.check()

    async def _restart(self) -> None:
        await asyncio.to_thread(self._agent.stop)
        self._agent.start()
        await asyncio.to_thread(self._agent.wait_until_ready)
        passes = 'controller_runtime_reconcile_total{controller="token-requestor"'
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while await asyncio.to_thread(self._agent.metric, passes) < self._secrets:
            if time.monotonic() > deadline:
                raise DevclusterError(f"not all Secrets were looked at; {self._agent.log_end()}")
            await asyncio.sleep(0.2)
        await asyncio.sleep(_QUIET_SECONDS)

    async def _with_token(self) -> int:
        found = await self._client.list(SECRETS, Selection(namespace=_NAMESPACE))
        return sum(keys.TOKEN_RENEW_TIMESTAMP in annotations(secret) for secret in found)


def _requests(made: Sequence[Call], secrets: int) -> tuple[str, str, str, str]:
    """How many, for each account, over which time, and how many in the worst second."""
    if not made:
        return "0", "0", "", ""
    by_account = collections.Counter(call.name for call in made)
    counts = [*by_account.values(), *([0] if len(by_account) < secrets else [])]
    each = str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    times = sorted(parse_time(call.event["requestReceivedTimestamp"]).timestamp() for call in made)
    worst = max(collections.Counter(int(moment) for moment in times).values())
    return str(len(made)), each, number(times[-1] - times[0]), str(worst)


async def _create(client: Client, count: int) -> None:
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def create(index: int) -> None:
        async with at_once:
            await client.create(SECRETS, _secret(index))

    await asyncio.gather(*map(create, range(count)))


def _secret(index: int) -> Object:
    wanted = {
        keys.SERVICE_ACCOUNT_NAME: f"account-{index}",
        keys.SERVICE_ACCOUNT_NAMESPACE: _NAMESPACE,
        keys.TOKEN_EXPIRATION_DURATION: _LIFETIME,
    }
    meta = {
        "namespace": _NAMESPACE,
        "name": f"token-{index}",
        "labels": {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR},
        "annotations": wanted,
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
