"""system-components-config: pods of system components go to the Nodes that are meant for them.

They get the configured node selector, and tolerate what these Nodes are tainted with. What that is, is worked out when
a Node or its taints change, not for each pod.
"""

from collections.abc import Iterable

from config import schema_webhooks as schema
from kube.objects import Object, metadata
from webhooks.admission import Handler, Mutation, Request
from webhooks.facts import Facts, Toleration
from webhooks.generic import defaulter
from webhooks.shapes import Fields, Int64, Strings, child, items, pod

NAME = "system-components-config"
PATH = "/webhooks/system-components-config"


class _Owner(Fields):
    api_version: str | None = None
    kind: str | None = None
    controller: bool | None = None


class _Metadata(Fields):
    owner_references: list[_Owner] | None = None


class _Toleration(Fields):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: Int64 | None = None


class _Spec(Fields):
    node_selector: Strings | None = None
    tolerations: list[_Toleration] | None = None


class _Pod(Fields):
    metadata: _Metadata | None = None
    spec: _Spec | None = None


_SHAPE = pod(_Pod)


Needed = tuple[tuple[Toleration, Object], ...]
"""Tolerations that pods need, each with what makes it equal to another one."""


def identity(toleration: Object) -> Toleration:
    """Equal for tolerations that mean the same: no operator is `Equal`, and no text is an empty one."""
    return Toleration(
        toleration.get("key") or "",
        toleration.get("operator") or "Equal",
        toleration.get("value") or "",
        toleration.get("effect") or "",
        toleration.get("tolerationSeconds"),
    )


def needed(configured: Iterable[schema.Toleration], of_nodes: Iterable[Toleration]) -> Needed:
    """The configured ones first, each only once."""
    found: dict[Toleration, Object] = {}
    for toleration in [*(_as_json(each) for each in configured), *(each.as_json() for each in of_nodes)]:
        found.setdefault(identity(toleration), toleration)
    return tuple(found.items())


def _as_json(configured: schema.Toleration) -> Object:
    fields = {
        "key": configured.key or None,
        "operator": configured.operator or None,
        "value": configured.value or None,
        "effect": configured.effect or None,
        "tolerationSeconds": configured.toleration_seconds,
    }
    return {name: value for name, value in fields.items() if value is not None}


def is_of_daemon_set(obj: Object) -> bool:
    """DaemonSets choose the Nodes of their pods themselves."""
    return any(
        owner.get("apiVersion") == "apps/v1" and owner.get("kind") == "DaemonSet" and owner.get("controller")
        for owner in metadata(obj).get("ownerReferences") or ()
    )


def select_nodes(obj: Object, node_selector: dict[str, str]) -> None:
    if node_selector:
        child(child(obj, "spec"), "nodeSelector").update(node_selector)


def tolerate(obj: Object, wanted: Needed) -> None:
    """A union: what the pod has, each only once, then what it has not."""
    own = (obj.get("spec") or {}).get("tolerations") or []
    known: dict[Toleration, Object] = {}
    for toleration in own:
        known.setdefault(identity(toleration), toleration)
    missing = [dict(toleration) for same, toleration in wanted if same not in known]
    if len(known) < len(own):
        obj["spec"]["tolerations"] = [*known.values(), *missing]
    elif missing:
        items(child(obj, "spec"), "tolerations").extend(missing)


def mutation(settings: schema.SystemComponentsConfig, facts: Facts) -> Mutation:
    of_nodes: tuple[Toleration, ...] = ()
    wanted = needed(settings.pod_tolerations, of_nodes)

    async def mutate(_: Request, obj: Object) -> None:
        nonlocal of_nodes, wanted
        _SHAPE.demand(obj)
        if is_of_daemon_set(obj):
            return
        current = facts.node_tolerations()
        if current is not of_nodes:
            of_nodes, wanted = current, needed(settings.pod_tolerations, current)
        select_nodes(obj, settings.pod_node_selector)
        tolerate(obj, wanted)

    return mutate


def handler(settings: schema.SystemComponentsConfig, facts: Facts) -> Handler:
    return defaulter(mutation(settings, facts))
