"""The controller `node-high-availability-config`: updates workloads when one Node becomes several, or the reverse.

The strictness of spreading replicas depends on whether there is more than one Node. The webhook of the same name
decides that when a workload is written; this controller checks the workloads once after the start, and writes those
with a changed result.

Each crossing of this line counts, not the final number: workloads written in between got the settings of the other
side. So each crossing leads to a pass, even if it is soon undone, and that pass begins a moment later, when the webhook
has observed it, too.
"""

import time
from collections.abc import Mapping
from typing import Any

import structlog

from agent.resource_manager.common.views import ALL_NODES, NODES_VIEW, NodeMetadata
from agent.resource_manager.context import Context
from gardener.keys import HIGH_AVAILABILITY_CONSIDER, HIGH_AVAILABILITY_SKIP
from kube.objects import Key, key, labels
from kube.resources import DEPLOYMENTS, NAMESPACES, STATEFUL_SETS, Resource
from kube.runtime.cache import Caches, Change, Store
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, enqueue_after

TOGETHER_SECONDS = 1.0
"""Seconds from a crossing to its pass: until the webhook has observed it, too, and for others that follow."""

_WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS)
_HOST = "kubernetes.io/hostname"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Reconciler:
    def __init__(self, *, client: Client, caches: Caches, nodes: Store[NodeMetadata]) -> None:
        self._client = client
        self._caches = caches
        self._nodes = nodes
        self._several: bool | None = None
        """State as of the last event of a Node."""
        self._crossed_at = float("-inf")

    def has_crossed(self) -> bool:
        """Whether one Node has become several, or several one, since the last call; false for the first."""
        before, self._several = self._several, self._has_several()
        if before in (None, self._several):
            return False
        self._crossed_at = time.monotonic()
        return True

    def _has_several(self) -> bool:
        return len(self._nodes) > 1

    async def reconcile(self, _: Key) -> Result:
        too_early = self._crossed_at + TOGETHER_SECONDS - time.monotonic()
        selection = Selection(label_selector=f"{HIGH_AVAILABILITY_CONSIDER}=true")
        for namespace in await self._client.list(NAMESPACES, selection, form=Form.METADATA):
            name = key(namespace).name
            for kind in _WORKLOADS if self._caches.covers(DEPLOYMENTS, name) else ():
                await self._patch_outdated(kind, name)
        return RequeueAfter(too_early) if too_early > 0 else Done()

    async def _patch_outdated(self, kind: Resource, namespace: str) -> None:
        """Write outdated workloads with an empty patch: the webhook makes the change."""
        for workload in await self._client.list(kind, Selection(namespace=namespace)):
            if not is_outdated(workload, several_nodes=self._has_several()):
                continue
            name = key(workload).name
            if await self._client.patch_if_exists(kind, Key(namespace, name), {}) is None:
                continue
            log.info("Updated a workload for another number of Nodes", kind=kind.kind, workload=name)


def is_outdated(workload: Mapping[str, Any], *, several_nodes: bool) -> bool:
    """Whether the spread over hosts fits the other number of Nodes."""
    if HIGH_AVAILABILITY_SKIP in labels(workload):
        return False
    pod_spec = ((workload.get("spec") or {}).get("template") or {}).get("spec") or {}
    constraints = pod_spec.get("topologySpreadConstraints") or []
    over_hosts = next((each for each in constraints if each.get("topologyKey") == _HOST), None)
    outdated = "ScheduleAnyway" if several_nodes else "DoNotSchedule"
    return over_hosts is not None and over_hosts.get("whenUnsatisfiable") == outdated


def declare(context: Context) -> ControlLoop:
    target = context.target
    loop = ControlLoop("node-high-availability-config", initial_keys=[ALL_NODES])

    def crossed(_: Change[NodeMetadata]) -> bool:
        return reconciler.has_crossed()

    nodes = loop.watch(target.caches, NODES_VIEW, enqueue_after(TOGETHER_SECONDS, ALL_NODES, when=crossed))
    reconciler = Reconciler(client=target.client, caches=target.caches, nodes=nodes)
    return loop.reconciled_by(reconciler)
