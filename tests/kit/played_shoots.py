"""Shoots whose control planes are objects only: a garden and a seed in one cluster, and a user who plays the rest.

    place = PlayedPlace(cluster)           # a cluster of this test file alone
    async with place.player() as player, place.gardenlet(declare, shoots=connection):
        ...

The player does what a seed does: pods become ready, extensions and operators answer, load balancers get addresses, and
what is deleted is let go. Objects that it is to leave alone are in `player.ignored`. There are no webhooks.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent.gardenlet.common.shoot_clusters import ShootClusters
from agent.gardenlet.context import Context
from components import ingress_gateway
from config.gardenlet.schema import Images
from devcluster.cluster import Cluster
from gardener import keys
from gardener.api import garden as resources
from gardener.api.definition import custom_resource_definition
from gardener.api.druid import ETCDS
from gardener.api.extensions import BACKUP_ENTRIES as SEED_ENTRIES
from gardener.api.extensions import CLUSTERS, DNS_RECORDS, EXTENSIONS
from gardener.api.garden.definitions import DEFINITIONS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_GOOD
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_objects import garden_object
from kit.gardenlet_controllers import GARDENER, Declare, gardenlet_at_work, gardenlet_config, gardenlet_context, only
from kit.gardenlet_seeds import describe
from kit.kinds import wait_until_served
from kit.processes.agent import AgentProcess
from kit.seed_kinds import install_seed_kinds
from kit.world import connected
from kube.clock import format_time, utc_now
from kube.errors import Conflict, NotFound
from kube.objects import Key, Object, annotations, finalizers, is_deleting, metadata, spec
from kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    SECRETS,
    SERVICES,
    Resource,
)
from kube.runtime.client import Client, Selection
from kube.runtime.connection import Connection
from process.clusters import Cluster as Connected
from process.clusters import Clusters, Endpoint

SEED, PROJECT, NAMESPACE = "local", "local", "garden-local"
ADDRESS = "10.0.0.1"
GATEWAY_NAMESPACE = "istio-ingress"
_PLAYER = "player"
_LOOK_SECONDS = 0.2
_ASKED = (SEED_ENTRIES, DNS_RECORDS, EXTENSIONS)
_IMAGES = Images(kubernetes="registry.k8s.io", resource_manager="resource-manager")


class ShootsAt(Clusters):
    """Connections to Shoots lead to one API server, whatever their kubeconfigs state."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(user_agent="test", component="gardenlet")
        self._connection = connection
        self.requested: list[str] = []
        """Servers that were to be talked to."""

    def open(self, endpoint: Endpoint) -> Connected:
        self.requested.append(endpoint.connection.server)
        return super().open(replace(endpoint, connection=self._connection))

    def replace(self, name: str, _: Connection) -> None:
        """Credentials do not matter."""


class PlayedPlace:
    """With a Project, a Seed that is ready, and what a Shoot without workers needs."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.garden = cluster, Garden(cluster)
        for each in DEFINITIONS:
            definition = custom_resource_definition(each)
            cluster.api.apply(CUSTOM_RESOURCE_DEFINITIONS.path(name=definition["metadata"]["name"]), definition)
        install_seed_kinds(cluster, with_istio=True)
        wait_until_served(cluster, *(each.resource.path() for each in DEFINITIONS))
        self._make_garden()
        self._make_gateway()

    def _make_gateway(self) -> None:
        """Its address is that of all Shoots."""
        self.garden.create(NAMESPACES, GATEWAY_NAMESPACE)
        wanted = {"type": "LoadBalancer", "ports": [{"port": 443}]}
        self.garden.create(SERVICES, ingress_gateway.NAME, namespace=GATEWAY_NAMESPACE, spec=wanted)
        status = {"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}}
        self.garden.patch(SERVICES, ingress_gateway.NAME, status, namespace=GATEWAY_NAMESPACE, status=True)

    def _make_garden(self) -> None:
        garden = self.garden
        garden.place(PROJECT)
        garden.create(NAMESPACES, f"seed-{SEED}")
        garden.create(resources.CLOUD_PROFILES, "local", spec=garden_object(resources.CLOUD_PROFILES)["spec"])
        for role in ("internal", "default"):
            domain = "internal.example.com" if role == "internal" else "external.example.com"
            meta = {
                "labels": {keys.ROLE: f"{role}-domain"},
                "annotations": {
                    "dns.gardener.cloud/provider": "local",
                    "dns.gardener.cloud/domain": domain,
                    "dns.gardener.cloud/zone": "zone-1",
                },
            }
            garden.create(SECRETS, role, namespace=f"seed-{SEED}", metadata=meta, stringData={"token": "token"})
        seed = garden_object(resources.SEEDS)["spec"]
        seed |= {"provider": {"type": "local", "region": "local", "zones": ["0"]}, "taints": []}
        seed["backup"] = {"provider": "local", "secretRef": {"name": "backup", "namespace": "garden"}}
        created = garden.create(resources.SEEDS, SEED, spec=seed)
        self.seed_uid: str = metadata(created)["uid"]
        now = format_time(utc_now())
        times = {"lastTransitionTime": now, "lastUpdateTime": now, "reason": "Test", "message": "test"}
        good = ("GardenletReady", "SeedSystemComponentsHealthy")
        status = {
            "gardener": GARDENER,
            "observedGeneration": metadata(created)["generation"],
            "clusterIdentity": "seed",
            "conditions": [{"type": each, "status": "True", **times} for each in good],
        }
        garden.patch(resources.SEEDS, SEED, {"status": status}, status=True)

    def shoot(self) -> Object:
        return self.garden.get(resources.SHOOTS, "a", namespace=NAMESPACE)

    def create_shoot(self, name: str, wanted: Object, **meta: Any) -> Object:
        return self.garden.create(resources.SHOOTS, name, namespace=NAMESPACE, metadata=meta, spec=wanted)

    @contextlib.asynccontextmanager
    async def player(self) -> AsyncIterator["Player"]:
        async with connected(self.cluster, f"{_PLAYER}/1") as client:
            player = Player(client)
            task = asyncio.create_task(player.play())
            try:
                yield player
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def process(self, kubeconfig: Path) -> AgentProcess:
        """A gardenlet that works on Shoots alone. Args: kubeconfig: of garden and seed."""
        seed = self.garden.get(resources.SEEDS, SEED)
        describe(garden=self.cluster, seed=self.cluster, networks=seed["spec"]["networks"])
        return AgentProcess(
            {
                "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
                "kind": "GardenletConfiguration",
                "gardenClientConnection": {"kubeconfig": str(kubeconfig)},
                "controllers": only("shoot"),
                "gracefulShutdownTimeout": "15s",
                "leaderElection": {
                    "leaderElect": True,
                    "resourceNamespace": NAMESPACE,
                    "leaseDuration": "60s",
                    "renewDeadline": "40s",
                },
                "logFormat": "json",
                "seedConfig": {"metadata": {"name": SEED}, "spec": seed["spec"]},
            },
            kubeconfig=kubeconfig,
        )

    @contextlib.asynccontextmanager
    async def gardenlet(
        self, *declared: Declare, shoots: Connection, road: Path | None = None, **configured: Any
    ) -> AsyncIterator[Context]:
        """Args: shoots: the API server of all Shoots. road: another kubeconfig. configured: of its configuration."""
        async with connected(road or self.cluster, "gardenlet/test") as client:
            config = gardenlet_config(SEED, images=_IMAGES, **configured)
            context = await gardenlet_context(garden=client, seed=client, config=config)
            shoot_clusters = ShootClusters(client, ShootsAt(shoots), config.shoot_client_connection)
            async with gardenlet_at_work(replace(context, shoot_clusters=shoot_clusters), *declared):
                yield context


Do = Callable[[Client, Resource, Object], Awaitable[None]]


class LeftShoot:
    """A Shoot in the seed whose deletion has failed, with no objects.

    Args: forced: whether it is given up. status: further fields. spec: the same.
    """

    def __init__(
        self, place: PlayedPlace, name: str, *, forced: bool = False, status: Object | None = None, **spec: Any
    ) -> None:
        self.place, self.name, self.namespace = place, name, f"shoot--local--{name}"
        whole = {**garden_object(resources.SHOOTS)["spec"], "seedName": SEED, **spec}
        if "provider" not in spec:
            whole |= {"networking": {"services": "10.4.0.0/16"}, "provider": {"type": "local"}}
            del whole["secretBindingName"]
        notes = {keys.CONFIRM_DELETION: "true"} | ({keys.CONFIRM_FORCE_DELETION: "true"} if forced else {})
        labels = {f"{keys.SEED_LABEL_PREFIX}{SEED}": "true"}
        shoot = place.create_shoot(name, whole, finalizers=[keys.GARDENER_FINALIZER], annotations=notes, labels=labels)
        written: Object = {
            "uid": shoot["metadata"]["uid"],
            "technicalID": self.namespace,
            "seedName": SEED,
            "gardener": {"id": "i", "name": "n", "version": "v0"},
            "lastOperation": {
                "type": "Delete",
                "state": "Failed",
                "progress": 30,
                "description": "failed",
                "lastUpdateTime": "2026-01-01T00:00:00Z",
            },
        }
        place.garden.patch(
            resources.SHOOTS, name, {"status": written | (status or {})}, namespace=NAMESPACE, status=True
        )

    def shoot(self) -> Object:
        return self.place.garden.get(resources.SHOOTS, self.name, namespace=NAMESPACE)

    def delete(self) -> None:
        self.place.garden.delete(resources.SHOOTS, self.name, namespace=NAMESPACE)

    def create(self, resource: Resource, name: str, **fields: Any) -> Object:
        namespace = self.namespace if resource.namespaced else ""
        return self.place.garden.create(resource, name, namespace=namespace, **fields)

    def find(self, resource: Resource, name: str, *, namespace: str = "") -> Object | None:
        namespace = namespace or (self.namespace if resource.namespaced else "")
        try:
            return self.place.garden.get(resource, name, namespace=namespace)
        except NotFound:
            return None

    def is_gone(self) -> bool:
        found = self.find(resources.SHOOTS, self.name, namespace=NAMESPACE)
        gone = [self.find(each, self.namespace) is None for each in (NAMESPACES, CLUSTERS)]
        return found is None and all(gone)

    async def until_gone(self) -> None:
        await soon(
            self.is_gone, "the Shoot to go", state=lambda: self.find(resources.SHOOTS, self.name, namespace=NAMESPACE)
        )

    def reported(self) -> str:
        """What Events report was left behind."""
        listed = self.place.cluster.api.get(EVENTS.path(namespace=NAMESPACE))["items"]
        own = [each for each in listed if each["involvedObject"]["name"] == self.name]
        return " ".join(each["message"] for each in own if each["reason"] == "LeftBehind")


@dataclass(eq=False, slots=True)
class Player:
    """Attributes:
    ignored: kind and name of objects that nothing is done for.
    namespace: of all objects that something is done for; empty: everywhere.
    simulated: what is done for each kind.
    """

    client: Client
    ignored: set[tuple[str, str]] = field(default_factory=set)
    namespace: str = ""
    played: Mapping[Resource, Do] = field(default_factory=lambda: PLAYED)

    async def play(self) -> None:
        while True:
            for resource, do in self.played.items():
                for each in await self.client.list(resource, Selection(namespace=self.namespace)):
                    if (resource.kind, metadata(each)["name"]) not in self.ignored:
                        with contextlib.suppress(NotFound, Conflict):
                            await do(self.client, resource, each)
            await asyncio.sleep(_LOOK_SECONDS)


async def say(client: Client, resource: Resource, obj: Object, status: Object) -> None:
    present = obj.get("status") or {}
    if {name: present.get(name) for name in status} != status:
        meta = metadata(obj)
        await client.patch(
            resource, Key(meta.get("namespace", ""), meta["name"]), {"status": status}, subresource="status"
        )


async def _let_go(client: Client, resource: Resource, obj: Object) -> None:
    if finalizers(obj):
        meta = metadata(obj)
        await client.patch(resource, Key(meta.get("namespace", ""), meta["name"]), {"metadata": {"finalizers": None}})


async def _rolls_out(client: Client, resource: Resource, obj: Object) -> None:
    count = spec(obj).get("replicas", 1)
    fields = ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas")
    conditions = [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}]
    reasons = ("MinimumReplicasAvailable", "NewReplicaSetAvailable")
    status = {
        "observedGeneration": metadata(obj)["generation"],
        "conditions": [each | {"reason": reason} for each, reason in zip(conditions, reasons, strict=True)],
        **(dict.fromkeys(fields, count) if count else {}),
    }
    reported = {"conditions": _bare((obj.get("status") or {}).get("conditions"))}
    if {**(obj.get("status") or {}), **reported} != status:
        await say(client, resource, obj, {**dict.fromkeys(fields), **status})  # none of those that were, if it sleeps


def _bare(conditions: Any) -> list[Object]:
    return [{name: each.get(name) for name in ("type", "status", "reason")} for each in conditions or ()]


async def _taken(client: Client, resource: Resource, obj: Object) -> Object:
    """Its requested operation is taken away, and it holds the object."""
    if keys.OPERATION not in annotations(obj):
        return obj
    meta = metadata(obj)
    change = {"metadata": {"annotations": {keys.OPERATION: None}, "finalizers": ["example.com/held"]}}
    return await client.patch(resource, Key(meta.get("namespace", ""), meta["name"]), change)


async def answers(client: Client, resource: Resource, obj: Object) -> None:
    if is_deleting(obj):
        return await _let_go(client, resource, obj)
    if keys.OPERATION not in annotations(obj) and (obj.get("status") or {}).get("lastOperation"):
        return None
    live = await _taken(client, resource, obj)
    operation = {
        "type": "Reconcile",
        "state": "Succeeded",
        "progress": 100,
        "description": "played",
        # As a clock that goes a little ahead: times are of seconds.
        "lastUpdateTime": format_time(utc_now() + timedelta(seconds=1)),
    }
    return await say(
        client, resource, live, {"observedGeneration": metadata(live)["generation"], "lastOperation": operation}
    )


async def _operates_etcd(client: Client, resource: Resource, obj: Object) -> None:
    if is_deleting(obj):
        return await _let_go(client, resource, obj)
    live = await _taken(client, resource, obj)
    count = spec(live).get("replicas", 0)
    counts = dict.fromkeys(("replicas", "readyReplicas", "currentReplicas", "updatedReplicas"), count)
    ready = {"status": "Ready", "reason": "Played", "lastTransitionTime": metadata(live)["creationTimestamp"]}
    members = [{"name": f"{metadata(live)['name']}-{number}", **ready} for number in range(count)] if count > 1 else []
    reported = {"observedGeneration": metadata(live)["generation"], "ready": bool(count), **counts}
    return await say(client, resource, live, reported | ({"members": members} if members else {}))


async def applies(client: Client, resource: Resource, obj: Object) -> None:
    if is_deleting(obj):
        return await _let_go(client, resource, obj)
    generation = metadata(obj)["generation"]
    if (obj.get("status") or {}).get("observedGeneration") == generation:
        return None
    now = format_time(utc_now())
    times = {"lastTransitionTime": now, "lastUpdateTime": now, "reason": "Played", "message": "played"}
    conditions = [{"type": of, "status": status, **times} for of, status in RESOURCES_GOOD.items()]
    return await say(client, resource, obj, {"observedGeneration": generation, "conditions": conditions})


PLAYED: Mapping[Resource, Do] = {
    DEPLOYMENTS: _rolls_out,
    ETCDS: _operates_etcd,
    **dict.fromkeys(_ASKED, answers),
    MANAGED_RESOURCES: applies,
    resources.BACKUP_ENTRIES: answers,
}
