"""Looks at the workloads when one Node becomes several, or several one; and once after the start."""

from collections.abc import Callable

import structlog

from agent.context import Context
from agent.node.high_availability_config.rules import CONSIDER, is_outdated
from agent.node.nodes import NODES_VIEW, NodeMetadata
from kube.cache import Caches, Change, Store
from kube.client import Client, Form, Selection
from kube.controller import Controller, Done, Result
from kube.errors import NotFound
from kube.objects import Key, key
from kube.queue import CHANGE
from kube.resources import NAMESPACES, Resource

_ALL_NODES = Key("", "")
_TOGETHER_SECONDS = 1.0
"""Nodes that come at once are looked at once."""
_WORKLOADS = (
    Resource("apps", "v1", "Deployment", "deployments", namespaced=True),
    Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True),
)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class HighAvailabilityConfigLoop:
    def __init__(self, context: Context) -> None:
        self._caches = context.target.caches
        self._nodes = self._caches.acquire(NODES_VIEW, needed_at_start=True)
        self._unsubscribe: Callable[[], None] = lambda: None
        toucher = Toucher(client=context.target.client, caches=self._caches, nodes=self._nodes)
        self.controller = Controller("node-high-availability-config", toucher.reconcile)

    async def start(self) -> None:
        await self._nodes.synced.wait()
        self.controller.queue.add(_ALL_NODES)
        self._unsubscribe = self._nodes.subscribe(self._changed)

    async def close(self) -> None:
        self._unsubscribe()
        await self._caches.release(NODES_VIEW)

    def kinds_changed(self, group: str) -> None:
        """Nothing depends on CustomResourceDefinitions."""

    def _changed(self, change: Change[NodeMetadata]) -> None:
        if (change.old is None) != (change.new is None):
            self.controller.queue.add_after(_ALL_NODES, _TOGETHER_SECONDS, CHANGE)


class Toucher:
    """Has workloads written again, without a change of its own."""

    def __init__(self, *, client: Client, caches: Caches, nodes: Store[NodeMetadata]) -> None:
        self._client = client
        self._caches = caches
        self._nodes = nodes
        self._several: bool | None = None
        """As of the last complete run."""

    async def reconcile(self, _: Key) -> Result:
        several = len(self._nodes) > 1
        if several != self._several:
            selection = Selection(label_selector=f"{CONSIDER}=true")
            for namespace in await self._client.list(NAMESPACES, selection, form=Form.METADATA):
                name = key(namespace).name
                for kind in _WORKLOADS if self._caches.covers(_WORKLOADS[0], name) else ():
                    await self._touch(kind, name, several=several)
            self._several = several
        return Done()

    async def _touch(self, kind: Resource, namespace: str, *, several: bool) -> None:
        for workload in await self._client.list(kind, Selection(namespace=namespace)):
            if not is_outdated(workload, several_nodes=several):
                continue
            name = key(workload).name
            try:
                await self._client.patch(kind, name, {}, namespace=namespace)
            except NotFound:
                continue
            log.info("A workload was written again for another number of Nodes", kind=kind.kind, workload=name)
