"""The plugin of kubectl compared with kubectl: cost of a call, with few and many ManagedResources."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measuring import connected
from benchmarks.report import Table, number
from benchmarks.workload import create_namespace, each_of, install_crd, managed_resource
from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import Key, Object
from kube.runtime.client import Client

_NAMESPACE = "benchmark"
_UNUSED = "unused"
_OBJECTS = 10
_COLUMNS = ("ManagedResources", "command", "CPU s", "to kubectl", "s", "to kubectl")
_KUBECTL, _PLUGIN = ("kubectl",), (sys.executable, "-m", "kubectl.mr")
_KIND = f"{MANAGED_RESOURCES.plural}.{MANAGED_RESOURCES.group}"


@dataclass(frozen=True, slots=True)
class _Cost:
    """Median of several calls, in seconds."""

    cpu: float
    wall: float


async def measure(*, sizes: Sequence[int], calls: int) -> Table:
    """Measure with numbers of ManagedResources, `sizes`, in ascending order."""
    rows: list[Sequence[str]] = []
    python = await asyncio.to_thread(_cost, [sys.executable, "-c", "pass"], {}, calls)
    async with Cluster() as cluster:
        await asyncio.to_thread(install_crd, cluster)
        environment = {"KUBECONFIG": str(cluster.kubeconfig)}
        async with connected(cluster) as (client, _):
            await create_namespace(client, _NAMESPACE)
            there = 0
            for size in sizes:
                await _create(client, range(there, size))
                there = size
                rows += await asyncio.to_thread(_rows, size, environment, calls)
    note = (
        f"Median of {calls} calls; CPU of the process, user and system. Each ManagedResource lists {_OBJECTS} objects. "
        f"`python -c pass` takes {number(python.cpu, 2)} s of CPU and {number(python.wall, 2)} s."
    )
    return Table("kubectl mr beside kubectl", _COLUMNS, rows, [note])


def _rows(size: int, environment: Mapping[str, str], calls: int) -> list[Sequence[str]]:
    found: list[Sequence[str]] = []
    for name, arguments in (("get -A", ["-A"]), ("get NAME", [_name(0), "-n", _NAMESPACE])):
        kubectl = _cost([*_KUBECTL, "get", _KIND, *arguments], environment, calls)
        plugin = _cost([*_PLUGIN, "get", *arguments], environment, calls)
        found.append((str(size), f"kubectl {name}", number(kubectl.cpu, 2), "", number(kubectl.wall, 2), ""))
        ratios = number(plugin.cpu / kubectl.cpu, 1), number(plugin.wall / kubectl.wall, 1)
        found.append(
            (str(size), f"kubectl mr {name}", number(plugin.cpu, 2), ratios[0], number(plugin.wall, 2), ratios[1])
        )
    return found


def _cost(command: Sequence[str], environment: Mapping[str, str], calls: int) -> _Cost:
    measured = [_once(command, {**os.environ, **environment}) for _ in range(calls)]
    return _Cost(statistics.median(cost.cpu for cost in measured), statistics.median(cost.wall for cost in measured))


def _once(command: Sequence[str], environment: Mapping[str, str]) -> _Cost:
    began = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return _Cost(usage.ru_utime + usage.ru_stime, time.monotonic() - began)


# --- objects


def _name(number_: int) -> str:
    return f"m{number_:04}"


async def _create(client: Client, numbers: range) -> None:
    async def one(number_: int) -> None:
        managed = managed_resource(_name(number_), _NAMESPACE, resource_class=_UNUSED)
        await client.create(MANAGED_RESOURCES, managed)
        body = {"status": _status(number_)}
        await client.patch(MANAGED_RESOURCES, Key(_NAMESPACE, _name(number_)), body, subresource="status")

    await each_of(numbers, one)


def _status(number_: int) -> Object:
    """Status of a healthy ManagedResource."""
    now = "2026-01-01T00:00:00Z"
    all_well = {"reason": "Fine", "message": "All is well.", "lastUpdateTime": now, "lastTransitionTime": now}
    statuses = {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}
    listed = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": _NAMESPACE}
    return {
        "observedGeneration": 1,
        "conditions": [{"type": kind, "status": status, **all_well} for kind, status in statuses.items()],
        "resources": [{**listed, "name": f"{_name(number_)}-{i}"} for i in range(_OBJECTS)],
    }
