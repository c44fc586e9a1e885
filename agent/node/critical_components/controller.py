"""What leads to a look at a Node: it got the taint, or something happened to a critical component on it."""

import asyncio
from collections.abc import Callable

from agent.context import Context
from agent.node.critical_components.reconcile import Stores, TaintRemover
from agent.node.critical_components.state import (
    CSI_NODES_VIEW,
    DAEMON_SETS_VIEW,
    NODES_VIEW,
    PODS_VIEW,
    TAINTED,
    DaemonSetState,
    NodeState,
    PodState,
)
from kube.cache import Change
from kube.controller import Controller
from kube.objects import Key
from kube.queue import CHANGE, RESYNC
from kube.resources import NODES

_NEW_NODE_SECONDS = 0.25
"""Several watches tell what there is: what was made just before a Node may be told after it."""
_VIEWS = (NODES_VIEW, PODS_VIEW, DAEMON_SETS_VIEW, CSI_NODES_VIEW)


class CriticalComponentsLoop:
    def __init__(self, context: Context) -> None:
        settings = context.config.controllers.node_critical_components
        self._caches = context.target.caches
        self._stores = Stores(
            nodes=self._caches.acquire(NODES_VIEW, needed_at_start=True),
            pods=self._caches.acquire(PODS_VIEW, needed_at_start=True),
            daemon_sets=self._caches.acquire(DAEMON_SETS_VIEW, needed_at_start=True),
            csi_nodes=self._caches.acquire(CSI_NODES_VIEW, needed_at_start=True),
        )
        self._unsubscribe: list[Callable[[], None]] = []
        self._remover = TaintRemover(
            client=context.target.client,
            stores=self._stores,
            recorder=context.target_recorder,
            backoff=settings.backoff,
        )
        self.controller = Controller(
            "node-critical-components",
            self._remover.reconcile,
            kind=NODES,
            concurrency=settings.concurrent_syncs,
        )

    async def start(self) -> None:
        stores = self._stores
        # A Node must not be looked at before all components are known.
        await asyncio.gather(
            *(store.synced.wait() for store in (stores.nodes, stores.pods, stores.daemon_sets, stores.csi_nodes))
        )
        self._unsubscribe = [
            stores.nodes.subscribe(self._node_changed),
            stores.pods.subscribe(self._pod_changed),
            stores.daemon_sets.subscribe(self._daemon_set_changed),
            stores.csi_nodes.subscribe(self._drivers_changed),
        ]

    async def close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        for view in _VIEWS:
            await self._caches.release(view)

    def kinds_changed(self, group: str) -> None:
        """Nothing depends on CustomResourceDefinitions."""

    def _node_changed(self, change: Change[NodeState]) -> None:
        name, old, new = change.key.name, change.old, change.new
        if new is None or not new.is_waiting:
            self._remover.ends(name)
            return
        self._remover.begins(name, seen=not change.initial)
        if change.initial:
            self.controller.queue.add(change.key, RESYNC)
        elif old is None or not old.is_waiting:
            self.controller.queue.add_after(change.key, _NEW_NODE_SECONDS, CHANGE)
        elif old != new:
            self.controller.queue.add(change.key)

    def _pod_changed(self, change: Change[PodState]) -> None:
        if change.old != change.new:
            for name in {pod.node for pod in (change.old, change.new) if pod is not None}:
                self._look_at(name)

    def _daemon_set_changed(self, change: Change[DaemonSetState]) -> None:
        if change.old != change.new:
            for key, _ in self._stores.nodes.by_index(TAINTED, value=True):
                self._look_at(key.name)

    def _drivers_changed(self, change: Change[frozenset[str]]) -> None:
        if change.old != change.new:
            self._look_at(change.key.name)

    def _look_at(self, name: str) -> None:
        node = self._stores.nodes.get(Key("", name))
        if node is not None and node.is_waiting:
            self.controller.queue.add(Key("", name))
