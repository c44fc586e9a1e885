"""The controller `node-high-availability-config`: looks at the workloads once after the start, and a moment after one
Node became several, or several one.
"""

from agent.resource_manager.common.nodes import ALL_NODES, NODES_VIEW, NodeMetadata
from agent.resource_manager.context import Context
from agent.resource_manager.node.high_availability_config.reconcile import TOGETHER_SECONDS, Reconciler
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, enqueue_after


def declare(context: Context) -> ControlLoop:
    target = context.target
    loop = ControlLoop("node-high-availability-config", initial_keys=[ALL_NODES])

    def crossed(_: Change[NodeMetadata]) -> bool:
        return reconciler.has_crossed()

    nodes = loop.watch(target.caches, NODES_VIEW, enqueue_after(TOGETHER_SECONDS, ALL_NODES, when=crossed))
    reconciler = Reconciler(client=target.client, caches=target.caches, nodes=nodes)
    return loop.reconciled_by(reconciler)
