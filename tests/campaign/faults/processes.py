"""What happens to agents and webhooks themselves: to their processes, logs, clocks, and to their lease."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from campaign.replicas import FULL_DISK, Replica
from campaign.stage import LEASE, LEASE_SECONDS, Stage, lease_seconds
from kit.processes.agent import AgentProcess
from kit.webhook_installation import NAMESPACE
from kube.clock import format_micro_time
from kube.errors import NotFound
from kube.resources import LEASES

_READY_SECONDS = 60.0
_REROUTE_SECONDS = 4.0
"""Until no request is sent any more to a server that was killed, or learns of one that came back."""
_LEASE_PATH = LEASES.path(namespace=NAMESPACE, name=LEASE)


async def _chosen(stage: Stage, agent: str) -> Replica[AgentProcess]:
    if agent == "second":
        return stage.second
    leader = await stage.leader() or stage.agents[0]
    return leader if agent == "leader" else next(each for each in stage.agents if each is not leader)


@contextlib.asynccontextmanager
async def agent_killed(stage: Stage, *, agent: str) -> AsyncIterator[str]:
    victim = await _chosen(stage, agent)
    victim.kill()
    yield victim.name


@contextlib.asynccontextmanager
async def agent_stopped(stage: Stage, *, agent: str) -> AsyncIterator[str]:
    victim = await _chosen(stage, agent)
    victim.terminate()
    yield victim.name


@contextlib.asynccontextmanager
async def agent_frozen(stage: Stage, *, agent: str) -> AsyncIterator[str]:
    """Longer than a lease lasts: for the process, time jumps."""
    victim = await _chosen(stage, agent)
    if not victim.is_running:
        yield "there was none"
        return
    victim.freeze()
    try:
        await asyncio.sleep(lease_seconds(stage.patience) - LEASE_SECONDS)
        yield victim.name
    finally:
        victim.thaw()


@contextlib.asynccontextmanager
async def webhook_killed(stage: Stage, *, replica: int) -> AsyncIterator[None]:
    victim = stage.webhooks[replica]
    with stage.excused(f"{victim.name} was killed", after=_REROUTE_SECONDS):
        victim.kill()
        await asyncio.sleep(0.1)
    yield
    await _ready(stage, replica)


@contextlib.asynccontextmanager
async def webhook_stopped(stage: Stage, *, replica: int) -> AsyncIterator[None]:
    """As a rolling update does it: nothing may be lost, so there is no excuse."""
    victim = stage.webhooks[replica]
    victim.terminate()
    yield
    await _ready(stage, replica)


async def _ready(stage: Stage, number: int) -> None:
    """The next strike may hit the other server, and one has to be there at any time."""
    server = stage.webhooks[number]
    async with asyncio.timeout(_READY_SECONDS * stage.patience):
        while not (await server.is_ready() and stage.balancer.chooses(server.process)):
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def disk_full(stage: Stage, *, program: str, replica: int) -> AsyncIterator[str]:
    victim: Replica[Any] = (stage.agents if program == "agent" else stage.webhooks)[replica]
    await victim.restart_logging_to(FULL_DISK)
    try:
        if program == "webhook":
            await _ready(stage, replica)
        yield victim.name
    finally:
        await victim.restart_logging_to(None)
        if program == "webhook":
            await _ready(stage, replica)


@contextlib.asynccontextmanager
async def clock_jumped(stage: Stage, *, replica: int, seconds: float) -> AsyncIterator[str]:
    clock = stage.agents[replica].clock
    if clock is None or not clock.is_movable:
        yield "not possible here: there is no libfaketime"
        return
    clock.move(seconds)
    try:
        yield stage.agents[replica].name
    finally:
        clock.move(0)


@contextlib.asynccontextmanager
async def lease_disturbed(stage: Stage, *, how: str) -> AsyncIterator[None]:
    """As by a user with another clock, or by hand."""
    api = stage.clusters["source"].api
    shift = timedelta(days=-1 if how == "past" else 1)
    spec: dict[str, object] = {"renewTime": format_micro_time(datetime.now(UTC) + shift)}
    if how == "stranger":
        spec |= {"holderIdentity": "stranger", "leaseDurationSeconds": 2}

    def disturb() -> None:
        with contextlib.suppress(NotFound):
            if how == "deleted":
                api.delete(_LEASE_PATH)
            else:
                api.patch(_LEASE_PATH, {"spec": spec})

    await stage.world.persist(disturb)
    yield
