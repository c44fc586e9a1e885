"""Tokens of many ServiceAccounts: requested, kept over a restart, and renewed over a whole lifetime."""

import asyncio
import collections
import time
from collections.abc import Awaitable, Callable, Sequence

from benchmarks.measuring import Meter, News, connected, passed, running
from benchmarks.program import USER_AGENT
from benchmarks.report import Table, calls, number
from benchmarks.workload import create_namespace, each_of
from devcluster.audit import Call
from gardener import keys
from kube.clock import parse_time
from kube.objects import Object, annotations
from kube.resources import SECRETS
from kube.runtime.cache import Caches, Change, View

_NAMESPACE = "tokens"
_LIFETIME = "10m"
_RENEWED_SECONDS = 510.0
"""Tokens of ten minutes are renewed between 8m and 8m24s."""
_PATIENCE = 900.0
_COLUMNS = (
    *("what", "TokenRequests", "for each", "spread over s", "most in 1 s"),
    *("s", "calls", "CPU s", "RSS (peak) MiB"),
)


async def measure(*, secrets: int, renewal: bool) -> Table:
    """Measure; with `renewal` wait until all tokens were renewed, which takes nine minutes."""
    async with (
        running(controllers={"tokenRequestor": {"enabled": True}}) as (cluster, agent, audit),
        connected(cluster) as (client, caches),
    ):
        await create_namespace(client, _NAMESPACE)
        await each_of(range(secrets), lambda i: client.create(SECRETS, secret(f"account-{i}", _NAMESPACE, _LIFETIME)))
        issued = _Issued(caches)

        async def issue() -> None:
            agent.start()
            await asyncio.to_thread(agent.wait_until_ready)
            await issued.until(lambda: issued.count == secrets, what="all Secrets to have a token", within=_PATIENCE)

        async def restart() -> None:
            await asyncio.to_thread(agent.stop)
            agent.start()
            await asyncio.to_thread(agent.wait_until_ready)
            await passed(agent, secrets, "token-requestor", within=_PATIENCE)

        async def row(name: str, act: Callable[[], Awaitable[None]]) -> tuple[str, ...]:
            meter = Meter(agent, audit)
            meter.start(fresh=True)
            await act()
            phase = await meter.stop(name, at=time.monotonic())
            made = await asyncio.to_thread(audit.calls, since=meter.mark, user_agent=USER_AGENT)
            requests = _requests([call for call in made if call.resource == "serviceaccounts/token"], secrets)
            return name, *requests, number(phase.seconds), calls(phase.calls), number(phase.cpu), phase.memory

        rows = [await row("from nothing", issue)]
        if renewal:
            rows.append(await row("until all are renewed", lambda: asyncio.sleep(_RENEWED_SECONDS)))
        rows.append(await row("a restart", restart))
    note = f"One Secret each; tokens are valid for {_LIFETIME}. CPU from the start of the process."
    return Table(f"Tokens of {secrets} ServiceAccounts", _COLUMNS, rows, [note])


class _Issued(News):
    """Number of Secrets with a token."""

    def __init__(self, caches: Caches) -> None:
        super().__init__()
        self.count = 0
        caches.acquire(View(SECRETS, _has_token)).subscribe(self._changed)

    def _changed(self, change: Change[bool]) -> None:
        self.count += bool(change.new) - bool(change.old)
        self.notify(change)


def _has_token(obj: Object) -> bool:
    return keys.TOKEN_RENEW_TIMESTAMP in annotations(obj)


def _requests(made: Sequence[Call], secrets: int) -> tuple[str, str, str, str]:
    """Number of requests, number for each account, seconds between first and last, and number in the worst second."""
    if not made:
        return "0", "0", "", ""
    by_account = collections.Counter(call.name for call in made)
    counts = [*by_account.values(), *([0] if len(by_account) < secrets else [])]
    each = str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    times = sorted(parse_time(call.event["requestReceivedTimestamp"]).timestamp() for call in made)
    worst = max(collections.Counter(int(moment) for moment in times).values())
    return str(len(made)), each, number(times[-1] - times[0]), str(worst)


def secret(account: str, namespace: str, lifetime: str) -> Object:
    """Secret that requests a token of this ServiceAccount."""
    wanted = {
        keys.SERVICE_ACCOUNT_NAME: account,
        keys.SERVICE_ACCOUNT_NAMESPACE: namespace,
        keys.TOKEN_EXPIRATION_DURATION: lifetime,
    }
    labels = {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR}
    meta = {"namespace": namespace, "name": f"token-{account}", "labels": labels, "annotations": wanted}
    return {"metadata": meta}
