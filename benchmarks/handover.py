"""Time without a leader after the leader ends: two agents with the Lease settings of the manifests, a change.

The leader is ended, cleanly or by `kill -9`, and a Secret is changed after that. The Lease states when the successor
has taken it, and the audit log of the API server when it wrote the object that the Secret describes.
"""

import asyncio
import base64
import json
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.measuring import running
from benchmarks.program import USER_AGENT, Agent
from benchmarks.report import Table, number
from benchmarks.workload import managed_resource
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from localprocesses.local import wait_until

_NAMESPACE = "default"
_SECRETS = f"/api/v1/namespaces/{_NAMESPACE}/secrets"
_CONFIG_MAPS = f"/api/v1/namespaces/{_NAMESPACE}/configmaps"
_MANAGED_RESOURCES = f"/apis/resources.gardener.cloud/v1alpha1/namespaces/{_NAMESPACE}/managedresources"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/gardener-resource-manager"
_NAME = "handed-over"
_PATIENCE = 60.0
_COLUMNS = ("end of the leader", "hand-overs", "s until the Lease is taken (max)", "s until the first write (max)")


@dataclass(frozen=True, slots=True)
class _HandOver:
    """Seconds after the start of the leader's end."""

    lease: float
    write: float


async def measure(*, clean: int, killed: int) -> Table:
    async with running() as (cluster, one, audit):
        with tempfile.TemporaryDirectory() as directory, Agent(cluster, Path(directory)) as other:
            rows = await asyncio.to_thread(_rows, _Pair(cluster, audit, one, other), clean, killed)
    note = "Lease settings are the defaults. After kill -9 the Lease has to expire: at least 13 s, at most 20 s."
    return Table("Hand-over between two agents", _COLUMNS, rows, [note])


def _rows(pair: "_Pair", clean: int, killed: int) -> list[tuple[str, ...]]:
    pair.start()
    return [
        _cells("SIGTERM", [pair.hand_over(signal.SIGTERM) for _ in range(clean)]),
        _cells("kill -9", [pair.hand_over(signal.SIGKILL) for _ in range(killed)]),
    ]


def _cells(end: str, all_: list[_HandOver]) -> tuple[str, ...]:
    lease, write = [one.lease for one in all_], [one.write for one in all_]
    return end, str(len(all_)), _median_and_max(lease), _median_and_max(write)


def _median_and_max(values: list[float]) -> str:
    return f"{number(statistics.median(values), 2)} ({number(max(values), 2)})"


class _Pair:
    """Leading and waiting agent, and an object that follows the Secret."""

    def __init__(self, cluster: Cluster, audit: Audit, one: Agent, other: Agent) -> None:
        self._api = cluster.api
        self._audit = audit
        self._leader, self._standby = one, other
        self._version = 0

    def start(self) -> None:
        self._api.create(_SECRETS, {"metadata": {"name": _NAME}, "data": self._manifests()})
        self._api.create(_MANAGED_RESOURCES, managed_resource(_NAME, _NAMESPACE))
        for agent in (self._leader, self._standby):
            agent.start()
            agent.wait_until_ready()
            self._until(lambda: self._leader.metric("leader_election_master_status") == 1)
        self._until(self._is_applied)

    def hand_over(self, by: signal.Signals) -> _HandOver:
        time.sleep(random.uniform(2, 4))  # noqa: S311 - any moment between two renewals, and two looks
        mark = self._audit.mark()
        began = time.time()
        self._leader.end(by)
        self._version += 1
        self._api.patch(f"{_SECRETS}/{_NAME}", {"data": self._manifests()})
        self._until(self._is_applied)
        lease = self._api.get(_LEASE)["spec"]
        writes = self._audit.calls(since=mark, user_agent=USER_AGENT, verbs=("update",))
        first = next(call for call in writes if call.resource == "configmaps")
        self._leader, self._standby = self._standby, self._leader
        self._standby.start()
        self._standby.wait_until_ready()
        received = first.event["requestReceivedTimestamp"]
        return _HandOver(lease=_seconds(lease["acquireTime"]) - began, write=_seconds(received) - began)

    def _manifests(self) -> dict[str, str]:
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": _NAME, "namespace": _NAMESPACE},
            "data": {"version": str(self._version)},
        }
        return {"objects.yaml": base64.b64encode(json.dumps(manifest).encode()).decode()}

    def _is_applied(self) -> bool:
        found = [each for each in self._api.get(_CONFIG_MAPS)["items"] if each["metadata"]["name"] == _NAME]
        return bool(found) and found[0]["data"] == {"version": str(self._version)}

    @staticmethod
    def _until(holds: Callable[[], bool]) -> None:
        wait_until(holds, what="an agent to take over", within=_PATIENCE, pause=0.02)


def _seconds(time_text: str) -> float:
    return datetime.fromisoformat(time_text).timestamp()
