"""What leads to a look at all Nodes: one came or went, or somebody changed a delay."""

from collections.abc import Callable

from agent.context import Context
from agent.node.agent_reconciliation_delay.reconcile import QUIET_SECONDS, DelayWriter, Unrest
from agent.node.nodes import NODES_VIEW, NodeMetadata
from kube.cache import Change
from kube.controller import Controller
from kube.objects import Key
from kube.queue import CHANGE

_ALL_NODES = Key("", "")


class AgentReconciliationDelayLoop:
    def __init__(self, context: Context) -> None:
        settings = context.config.controllers.node_agent_reconciliation_delay
        self._caches = context.target.caches
        self._nodes = self._caches.acquire(NODES_VIEW, needed_at_start=True)
        self._unsubscribe: Callable[[], None] = lambda: None
        self._unrest = Unrest()
        self._writer = DelayWriter(
            client=context.target.client,
            nodes=self._nodes,
            unrest=self._unrest,
            least=settings.min_delay,
            most=settings.max_delay,
        )
        self.controller = Controller("node-agent-reconciliation-delay", self._writer.reconcile)

    async def start(self) -> None:
        await self._nodes.synced.wait()
        self._unsubscribe = self._nodes.subscribe(self._changed)

    async def close(self) -> None:
        self._unsubscribe()
        await self._caches.release(NODES_VIEW)

    def kinds_changed(self, group: str) -> None:
        """Nothing depends on CustomResourceDefinitions."""

    def _changed(self, change: Change[NodeMetadata]) -> None:
        old, new = change.old, change.new
        if old == new:
            return
        stays = old is not None and new is not None and old.agent_secret == new.agent_secret
        if stays and new is not None and self._writer.is_as_wanted(change.key.name, new):
            return  # written by ourselves
        self._unrest.stir()
        self.controller.queue.add_after(_ALL_NODES, QUIET_SECONDS, CHANGE)
