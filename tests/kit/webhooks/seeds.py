"""The graph of a garden, made of objects."""

from collections.abc import Iterable
from typing import Any

from gardener.api import garden
from gardener.garden.seed_graph import Graph, Node
from kube.objects import Object
from kube.resources import Resource
from kube.runtime.cache import Store
from kube.runtime.watch import ListBegins, ListEnds, Present
from webhooks.authorizers.seed.graph import VIEWS


def obj(resource: Resource, name: str, namespace: str = "", uid: str = "", **fields: Any) -> Object:
    place = {"namespace": namespace} if namespace else {}
    return {**resource.type_meta, "metadata": {"name": name, **place, "uid": uid}, **fields}


def shoot(
    name: str, seed: str, *, former: str = "", binding: str = "b", namespace: str = "garden-dev", **spec: Any
) -> Object:
    """Its technical ID is `shoot--dev--<name>`, its uid `uid-<name>`."""
    status = {"technicalID": f"shoot--dev--{name}", "uid": f"uid-{name}", **({"seedName": former} if former else {})}
    profile = {"kind": "CloudProfile", "name": "local"}
    whole = {"seedName": seed, "secretBindingName": binding, "cloudProfile": profile, **spec}
    return obj(garden.SHOOTS, name, namespace, uid=f"uid-{name}", spec=whole, status=status)


def managed_seed(name: str, shoot_name: str, **metadata: Any) -> Object:
    """Its backup Secret is `garden/backup-<name>`."""
    backup = {"secretRef": secret_ref(f"backup-{name}")}
    spec = {"shoot": {"name": shoot_name}, "gardenlet": {"config": {"seedConfig": {"spec": {"backup": backup}}}}}
    found = obj(garden.MANAGED_SEEDS, name, "garden", spec=spec)
    found["metadata"] |= metadata
    return found


def templated_seed(name: str, shoot_name: str, seed: Object) -> Object:
    """A ManagedSeed with a template. Args: seed: its spec."""
    return obj(
        garden.MANAGED_SEEDS, name, "garden", spec={"shoot": {"name": shoot_name}, "seedTemplate": {"spec": seed}}
    )


def secret_ref(name: str, namespace: str = "garden") -> Object:
    return {"name": name, "namespace": namespace}


def named(name: str) -> Object:
    """An entry of `spec.resources` of a Shoot."""
    return {"name": name, "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": name}}


def graph_of(objects: Iterable[Object]) -> Graph:
    stores: dict[Resource, Store[Node]] = {resource: Store(view) for resource, view in VIEWS.items()}
    sources = {(of.api_version, of.kind): store.source("") for of, store in stores.items()}
    for source in sources.values():
        source.apply(ListBegins(0))
    for each in objects:
        sources[each["apiVersion"], each["kind"]].apply(Present(each))
    for source in sources.values():
        source.apply(ListEnds(0))
    return Graph(stores)
