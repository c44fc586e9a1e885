"""The controller `node-high-availability-config`: looks at the workloads once after the start, and when Nodes come or
go.
"""

from agent.resource_manager.context import Context
from agent.resource_manager.node.high_availability_config.reconcile import Reconciler
from agent.resource_manager.node.nodes import ALL_NODES, NODES_VIEW, NodeMetadata
from kube.cache import Change
from kube.loop import ControlLoop, enqueue_after

_TOGETHER_SECONDS = 1.0
"""Nodes that come at once are looked at once."""


def declare(context: Context) -> ControlLoop:
    target = context.target
    loop = ControlLoop("node-high-availability-config", initial_keys=[ALL_NODES])
    nodes = loop.watch(target.caches, NODES_VIEW, enqueue_after(_TOGETHER_SECONDS, ALL_NODES, when=_came_or_went))
    return loop.reconciled_by(Reconciler(client=target.client, caches=target.caches, nodes=nodes))


def _came_or_went(change: Change[NodeMetadata]) -> bool:
    return (change.old is None) != (change.new is None)
