"""The controller `node-agent-reconciliation-delay`: all Nodes are looked at when one came or went, or a delay was
changed.
"""

from functools import partial

from agent.resource_manager.common.nodes import ALL_NODES, NODES_VIEW, NodeMetadata
from agent.resource_manager.context import Context
from agent.resource_manager.node.agent_reconciliation_delay.reconcile import QUIET_SECONDS, Delays, Reconciler
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, Queue
from kube.runtime.queue import CHANGE


def declare(context: Context) -> ControlLoop:
    settings, target = context.config.controllers.node_agent_reconciliation_delay, context.target
    loop = ControlLoop("node-agent-reconciliation-delay")
    state = Delays()
    nodes = loop.watch(target.caches, NODES_VIEW, partial(_node_changed, state))
    return loop.reconciled_by(
        Reconciler(client=target.client, nodes=nodes, state=state, least=settings.min_delay, most=settings.max_delay)
    )


def _node_changed(state: Delays, queue: Queue, change: Change[NodeMetadata]) -> None:
    old, new = change.old, change.new
    if old == new:
        return
    stays = old is not None and new is not None and old.agent_secret == new.agent_secret
    if stays and new is not None and state.is_as_wanted(change.key.name, new):
        return  # written by ourselves
    state.debounce.restart()
    queue.add_after(ALL_NODES, QUIET_SECONDS, CHANGE)
