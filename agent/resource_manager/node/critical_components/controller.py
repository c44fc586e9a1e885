"""The controller `node-critical-components`: reconciles Nodes with the taint, and after changes of their components."""

from collections.abc import Iterator
from functools import partial

from agent.resource_manager.context import Context
from agent.resource_manager.node.critical_components.reconcile import (
    CSI_NODES_VIEW,
    DAEMON_SETS_VIEW,
    NODES_VIEW,
    PODS_VIEW,
    TAINTED,
    NodeStores,
    Reconciler,
    Waits,
)
from agent.resource_manager.node.critical_components.rules import NodeState, PodState
from kube.objects import Key
from kube.resources import NODES
from kube.runtime.cache import Change, Store
from kube.runtime.loop import ControlLoop, Queue, enqueue_mapped, enqueue_users
from kube.runtime.priorities import CHANGE, RESYNC

_NEW_NODE_SECONDS = 0.25
"""Seconds that a new Node waits: watches are independent, so older objects may arrive after it."""


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.node_critical_components, context.target.caches
    loop = ControlLoop("node-critical-components", kind=NODES, workers=settings.concurrent_syncs)
    waits = Waits()
    nodes = loop.watch(caches, NODES_VIEW, partial(_node_changed, waits))
    stores = NodeStores(
        nodes=nodes,
        pods=loop.watch(caches, PODS_VIEW, enqueue_mapped(partial(_nodes_of_pod, nodes))),
        daemon_sets=loop.watch(caches, DAEMON_SETS_VIEW, enqueue_users(partial(_waiting_nodes, nodes))),
        csi_nodes=loop.watch(caches, CSI_NODES_VIEW, enqueue_mapped(partial(_node_of_drivers, nodes))),
    )
    return loop.reconciled_by(
        Reconciler(
            client=context.target.client,
            stores=stores,
            waits=waits,
            recorder=context.target_recorder,
            backoff=settings.backoff,
        )
    )


def _node_changed(waits: Waits, queue: Queue, change: Change[NodeState]) -> None:
    name, old, new = change.key.name, change.old, change.new
    if new is None or not new.is_waiting:
        waits.ends(name)
        return
    waits.begins(name, seen=not change.initial)
    if change.initial:
        queue.add(change.key, RESYNC)
    elif old is None or not old.is_waiting:
        queue.add_after(change.key, _NEW_NODE_SECONDS, CHANGE)
    elif old != new:
        queue.add(change.key)


def _nodes_of_pod(nodes: Store[NodeState], change: Change[PodState]) -> Iterator[Key]:
    names = {pod.node for pod in (change.old, change.new) if pod is not None}
    return (node for name in names if _is_waiting(nodes, node := Key("", name)))


def _waiting_nodes(nodes: Store[NodeState], _: Key) -> list[Key]:
    return nodes.keys_by_index(TAINTED, value=True)


def _node_of_drivers(nodes: Store[NodeState], change: Change[frozenset[str]]) -> tuple[Key, ...]:
    return (change.key,) if _is_waiting(nodes, change.key) else ()


def _is_waiting(nodes: Store[NodeState], name: Key) -> bool:
    node = nodes.get(name)
    return node is not None and node.is_waiting
