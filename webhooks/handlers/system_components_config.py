"""system-components-config: place pods of system components on the Nodes for them.

They get the configured node selector, and tolerate the taints of these Nodes. The tolerations are computed when a Node
or its taints change, not for each pod.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple

import structlog

from config.resource_manager import webhooks as schema
from gardener import keys
from kube.objects import Object, key, label_selector_text, mappings, metadata, spec, text
from kube.resources import NODES
from kube.runtime.cache import Change, View
from process.configuration.fields import as_object
from webhooks.admission import Mutation, Request
from webhooks.descriptor import Entry, MutatingWebhook
from webhooks.rules.registration import EVERYTHING, PODS, Instance, Mode, Selector, having, without
from webhooks.rules.shapes import Int64, Strings, child, items, pod
from webhooks.state import SharedListers

MOST_TAINTS = 50
"""Maximum number of taints of a Node that pods tolerate."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_OWNER = {"apiVersion": str, "kind": str, "controller": bool}
_TOLERATION = {"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": Int64}
_SPEC = {"nodeSelector": Strings, "tolerations": [_TOLERATION]}
_SHAPE = pod({"metadata": {"ownerReferences": [_OWNER]}, "spec": _SPEC})


class Identity(NamedTuple):
    """Equal for equivalent tolerations: no operator means `Equal`, and no text an empty one."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None


def identity(toleration: Object) -> Identity:
    return Identity(
        toleration.get("key") or "",
        toleration.get("operator") or "Equal",
        toleration.get("value") or "",
        toleration.get("effect") or "",
        toleration.get("tolerationSeconds"),
    )


def _is_transient(taint_key: str) -> bool:
    """Whether a taint is for the state of a Node, not for its purpose."""
    return "kubernetes.io/" in taint_key or taint_key == "ToBeDeletedByClusterAutoscaler"


def tolerations(node: Object) -> tuple[Object, ...]:
    """Tolerations that a pod needs on this Node; none if there are too many for all pods."""
    found, taints = [], mappings(spec(node).get("taints"))
    if len(taints) > MOST_TAINTS:
        log.warning("A Node has too many taints to tolerate", node=key(node).name, taints=len(taints))
        return ()
    for taint in taints:
        taint_key, value = text(taint.get("key")), text(taint.get("value"))
        if not _is_transient(taint_key):
            operator = "Equal" if value else "Exists"
            fields = {"key": taint_key, "operator": operator, "value": value, "effect": text(taint.get("effect"))}
            found.append({name: content for name, content in fields.items() if content})
    return tuple(found)


def view(node_selector: Mapping[str, str]) -> View[tuple[Object, ...]]:
    return View(NODES, tolerations, label_selector=label_selector_text(node_selector))


Needed = tuple[tuple[Identity, Object], ...]
"""Tolerations that pods need, each with its identity."""


def needed(configured: Iterable[schema.Toleration], of_nodes: Iterable[Object]) -> Needed:
    """Return the tolerations, configured ones first, each only once."""
    found: dict[Identity, Object] = {}
    for toleration in chain(map(as_object, configured), of_nodes):
        found.setdefault(identity(toleration), toleration)
    return tuple(found.items())


def is_of_daemon_set(obj: Object) -> bool:
    """Whether a DaemonSet owns the pod; DaemonSets choose Nodes themselves."""
    return any(
        owner.get("apiVersion") == "apps/v1" and owner.get("kind") == "DaemonSet" and owner.get("controller")
        for owner in metadata(obj).get("ownerReferences") or ()
    )


def select_nodes(obj: Object, node_selector: dict[str, str]) -> None:
    if node_selector:
        child(child(obj, "spec"), "nodeSelector").update(node_selector)


def tolerate(obj: Object, wanted: Needed) -> None:
    """Add missing tolerations to those of the pod, each only once."""
    own = (obj.get("spec") or {}).get("tolerations") or []
    known: dict[Identity, Object] = {}
    for toleration in own:
        known.setdefault(identity(toleration), toleration)
    missing = [dict(toleration) for same, toleration in wanted if same not in known]
    if len(known) < len(own):
        obj["spec"]["tolerations"] = [*known.values(), *missing]
    elif missing:
        items(child(obj, "spec"), "tolerations").extend(missing)


def mutation(settings: schema.SystemComponentsConfig, state: SharedListers) -> Mutation:
    wanted: Needed | None = None

    def changed(change: Change[tuple[Object, ...]]) -> None:
        nonlocal wanted
        # Nodes report every few minutes that they are alive; their taints seldom change.
        if change.old != change.new:
            wanted = None

    nodes = state.lister(view(settings.node_selector))
    nodes.subscribe(changed)

    async def mutate(_: Request, obj: Object) -> None:
        nonlocal wanted
        _SHAPE.demand(obj)
        if is_of_daemon_set(obj):
            return
        if wanted is None:
            wanted = needed(settings.pod_tolerations, chain.from_iterable(of for _, of in sorted(nodes.store.items())))
        select_nodes(obj, settings.pod_node_selector)
        tolerate(obj, wanted)

    return mutate


_PREFIX = f"system-components-config.{keys.GROUP}"


def _opted_in(instance: Instance) -> Selector:
    return having(f"{_PREFIX}/consider", "true") if instance.mode is Mode.RUNTIME else EVERYTHING


WEBHOOK = MutatingWebhook(
    name="system-components-config",
    path="/webhooks/system-components-config",
    settings=schema.SystemComponentsConfig,
    mutation=mutation,
    entries=(
        Entry(
            rules=(PODS,),
            namespaces=lambda instance: instance.namespaces() & _opted_in(instance),
            objects=lambda instance: instance.managed() & without(f"{_PREFIX}/skip") & instance.not_ours(),
        ),
    ),
)
