"""`python -m benchmarks sharding`: one agent against several that share the work, by namespace or by class.

Each agent has a user of its own, so the API server's audit log shows the writer. The same ManagedResources are given to
one agent, to several that watch a namespace each, and to several with a class each.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.measuring import WRITES, passed
from benchmarks.observer import Observer, observing
from benchmarks.program import CONFIG, PATIENT_ELECTION, Agent
from benchmarks.report import Table, number
from benchmarks.workload import Workload, create_namespace, install_crd
from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from kube.visible_text import printable

_COLUMNS = ("", "agent", "ManagedResources", "s", "calls", "CPU s", "idle MiB", "idle calls", "restart CPU s", "")
_REST = 20.0
_QUIET = 5.0


@dataclass(frozen=True, slots=True)
class Setup:
    """Distribution of the work.

    Args:
        classes: classes of the ManagedResources of each namespace; empty for the default one.
        agents: configuration of each agent without the common parts, by its user.
    """

    name: str
    classes: Sequence[str]
    agents: Mapping[str, Mapping[str, Any]]


def setups(namespaces: Sequence[str]) -> list[Setup]:
    """One agent, and one for each namespace, by namespace and by class."""
    everybody = [""] * len(namespaces)
    by_namespace = {name: shard(name, namespaces=[name]) for name in namespaces}
    by_class = {name: shard(name, resource_class=name) for name in namespaces}
    return [
        Setup("one agent", everybody, {"single": {"leaderElection": PATIENT_ELECTION}}),
        Setup("by namespace", everybody, by_namespace),
        Setup("by class", namespaces, by_class),
    ]


def shard(name: str, *, namespaces: Sequence[str] = (), resource_class: str = "") -> dict[str, Any]:
    """Configuration of an agent that keeps to its share: a Lease of its own, and the share.

    One with a class of its own needs a label of its own as well, or it caches the objects of all classes.
    """
    sections: dict[str, Any] = {
        "leaderElection": {**PATIENT_ELECTION, "resourceName": f"gardener-resource-manager-{name}"}
    }
    for connection in ("sourceClientConnection", "targetClientConnection"):
        sections[connection] = {**CONFIG[connection], "namespaces": list(namespaces)}
    if resource_class:
        managed = {**CONFIG["controllers"]["managedResource"], "managedByLabelValue": f"gardener-{name}"}
        sections["controllers"] = {"resourceClass": resource_class, "managedResource": managed}
    return sections


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agents", type=int, default=3, help="number of agents (default: 3)")
    parser.add_argument("--count", type=int, default=3000, help="total number of ManagedResources (default: 3000)")
    parser.add_argument("--size", type=int, default=10, help="objects per ManagedResource (default: 10)")
    parser.add_argument(
        "--most", type=float, default=1800.0, metavar="SECONDS", help="time limit of a setup (default: 1800)"
    )


async def measure(options: argparse.Namespace) -> tuple[str, bool]:
    """Return the table; it has no thresholds."""
    agents, count = options.agents, options.count // options.agents
    namespaces = [f"shard-{index}" for index in range(agents)]
    began = machine.description()["load at the start"]
    rows = []
    for setup in setups(namespaces):
        rows += await _measure(setup, namespaces, count, options.size, most=options.most)
        print(printable(str(rows[-1])), file=sys.stderr, flush=True)
    note = (
        f"{agents} namespaces with {count} ManagedResources of {options.size} objects each. Calls until all was "
        "applied, without leases and watches. The last column: objects that another agent has written, too. "
        f"Load of the machine at the start: {began}."
    )
    return str(Table(f"One agent against {agents}", _COLUMNS, rows, [note])), True


async def _measure(
    setup: Setup, namespaces: Sequence[str], count: int, size: int, *, most: float
) -> list[tuple[str, ...]]:
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(Cluster())
        await asyncio.to_thread(install_crd, cluster)
        observer = await stack.enter_async_context(observing(cluster, *namespaces, objects=False))
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        audit = stack.enter_context(contextlib.closing(cluster.audit()))
        works = await _works(observer, setup, namespaces, count, size)
        agents: dict[str, Agent] = {}
        for user, configured in setup.agents.items():
            sections = dict(configured)
            controllers = sections.pop("controllers", None)
            kubeconfig = cluster.kubeconfig_for(user, ["system:masters"])
            agents[user] = stack.enter_context(
                Agent(cluster, directory, controllers=controllers, sections=sections, kubeconfig=kubeconfig, name=user)
            )
        return await _run(setup, agents, audit, observer, works, most=most)


async def _works(observer: Observer, setup: Setup, namespaces: Sequence[str], count: int, size: int) -> list[Workload]:
    works = []
    for namespace, resource_class in zip(namespaces, setup.classes, strict=True):
        await create_namespace(observer.client, namespace)
        work = Workload(observer.client, namespace=namespace, count=count, size=size, resource_class=resource_class)
        await work.create_secrets()
        works.append(work)
    return works


async def _run(
    setup: Setup,
    agents: Mapping[str, Agent],
    audit: Audit,
    observer: Observer,
    works: Sequence[Workload],
    *,
    most: float,
) -> list[tuple[str, ...]]:
    total, size = sum(work.count for work in works), works[0].size
    for agent in agents.values():
        agent.start()
    for agent in agents.values():
        await asyncio.to_thread(agent.wait_until_ready)
    mark = audit.mark()
    before = {user: agent.cpu_seconds() for user, agent in agents.items()}
    began = time.monotonic()

    def all_applied() -> bool:
        for agent in agents.values():
            agent.check()
        return observer.applied(size) == total

    async with asyncio.TaskGroup() as tasks:
        for work in works:
            tasks.create_task(work.create())
    seconds = await observer.until(all_applied, what="all to be applied", within=most, pause=0.2) - began
    await asyncio.sleep(_QUIET)
    made = await asyncio.to_thread(audit.calls, since=mark)
    cpu = {user: agent.cpu_seconds() - before[user] for user, agent in agents.items()}
    mark = audit.mark()
    await asyncio.sleep(_REST)
    idle = Counter(call.user for call in await asyncio.to_thread(audit.calls, since=mark))
    memory = {user: agent.resident_mib() for user, agent in agents.items()}
    restarts = await _restart(agents, total // len(agents))
    return [
        (
            setup.name,
            user,
            str(total // len(agents)),
            number(seconds),
            str(sum(call.user == user for call in made)),
            number(cpu[user], 2),
            number(memory[user], 0),
            str(idle[user]),
            number(restarts[user], 2),
            str(shared_writes(made, user)),
        )
        for user in agents
    ]


async def _restart(agents: Mapping[str, Agent], each: int) -> dict[str, float]:
    """Return the CPU of each agent for a pass over its share."""
    for agent in agents.values():
        await asyncio.to_thread(agent.stop)
    for agent in agents.values():
        agent.start()
    for agent in agents.values():
        await asyncio.to_thread(agent.wait_until_ready)
        await passed(agent, each)
    return {user: agent.cpu_seconds() for user, agent in agents.items()}


def shared_writes(calls: Sequence[Call], user: str) -> int:
    """Number of objects written by a user and by another agent."""
    writers: dict[tuple[str, str, str, str], set[str]] = {}
    for call in calls:
        if call.verb in WRITES and call.resource != "events" and not call.user_agent.startswith("benchmark"):
            plural = call.resource.partition("/")[0]
            writers.setdefault((call.group, plural, call.namespace, call.name), set()).add(call.user)
    agents_only = {name for name in writers if user in writers[name]}
    return sum(any(other.startswith("shard-") and other != user for other in writers[name]) for name in agents_only)
