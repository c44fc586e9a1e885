"""What runs beside a gardenlet on a seed with pods, played: everything that has a contract with it.

    async with asyncio.TaskGroup() as tasks:
        playing = tasks.create_task(Pods(client, namespace, shoot_cluster).play())
        ...
        playing.cancel()

etcd-druid           takes up what is asked of an Etcd, and reports its members
kubelets             all pods of a Deployment are ready at once; so the cluster has no controllers of Deployments
extensions           answer DNSRecords and BackupEntries
the resource manager of a Shoot  has tokens for the Secrets that ask for them, and has applied each ManagedResource

The API server of the Shoot is another cluster: tokens are for it, and `Detours` lead connections to it.
"""

import asyncio
import base64
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

import yaml

from devcluster.cluster import Cluster
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.api.extensions import DNS_RECORDS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_GOOD
from kube.clock import format_time, utc_now
from kube.errors import Conflict, NotFound
from kube.objects import Object, annotations, finalizers, integer, is_deleting, key, mapping, metadata, spec, string_map
from kube.resources import DEPLOYMENTS, SECRETS, Resource
from kube.runtime.client import Client, Selection
from kube.runtime.connection import load_kubeconfig
from process.clusters import Cluster as OpenCluster
from process.clusters import Clusters, Endpoint

_LOOK_SECONDS = 0.1
_DRUID = "druid.gardener.cloud/etcd-druid"


class Detours(Clusters):
    """Connections of a gardenlet to Shoots, all of which lead to one cluster."""

    def __init__(self, shoot: Cluster) -> None:
        super().__init__(user_agent="test", component="gardenlet")
        self._shoot = shoot
        self.asked: list[str] = []
        """Servers that were to be talked to."""

    def open(self, endpoint: Endpoint) -> OpenCluster:
        self.asked.append(endpoint.connection.server)
        return super().open(replace(endpoint, connection=load_kubeconfig(self._shoot.kubeconfig)))


@dataclass(slots=True)
class Pods:
    """Args: client: of the seed. namespace: of the Shoot in the seed. shoot: the cluster that is the Shoot's."""

    client: Client
    namespace: str
    shoot: Cluster
    most_members: dict[str, int] = field(default_factory=dict)
    """Of each Etcd, and of each Deployment: how many there were at once."""

    async def play(self) -> None:
        parts: dict[Resource, Callable[[Object], Iterator[tuple[Object, str]]]] = {
            ETCDS: self._etcd,
            DEPLOYMENTS: self._deployment,
            DNS_RECORDS: _answer,
            MANAGED_RESOURCES: _applied,
            SECRETS: partial(_with_token, token=self.shoot.token),
        }
        while True:
            for resource, part in parts.items():
                for each in await self.client.list(resource, Selection(namespace=self.namespace)):
                    for body, subresource in part(each):
                        await self._patch(resource, each, body, subresource)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _patch(self, resource: Resource, obj: Object, body: Object, subresource: str) -> None:
        name = key(obj)
        with suppress(NotFound, Conflict):  # it has changed: the next look sees
            await self.client.patch(resource, name.name, body, namespace=name.namespace, subresource=subresource)

    def _etcd(self, etcd: Object) -> Iterator[tuple[Object, str]]:
        if is_deleting(etcd):
            if finalizers(etcd):
                yield {"metadata": {"finalizers": None}}, ""
            return
        if _DRUID not in finalizers(etcd) or keys.OPERATION in annotations(etcd):
            version = metadata(etcd)["resourceVersion"]
            meta = {"finalizers": [_DRUID], "annotations": {keys.OPERATION: None}, "resourceVersion": version}
            yield {"metadata": meta}, ""
            return
        wanted = self._seen(etcd)
        said = {
            "status": "Ready",
            "reason": "LeaseSucceeded",
            "lastTransitionTime": metadata(etcd)["creationTimestamp"],
        }
        members = [{"name": f"{key(etcd).name}-{number}", **said} for number in range(wanted)]
        counts = {f"{each}Replicas": wanted for each in ("current", "updated", "ready")}
        status = {"replicas": wanted, **counts, "ready": True, "members": members}
        yield from _unless_said(etcd, {"observedGeneration": metadata(etcd)["generation"], **status})

    def _deployment(self, deployment: Object) -> Iterator[tuple[Object, str]]:
        wanted, now = self._seen(deployment), format_time(utc_now())
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted)
        reasons = {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}
        times = {"lastTransitionTime": now, "lastUpdateTime": now}
        conditions = [
            {"type": each, "status": "True", "reason": reason, "message": "played", **times}
            for each, reason in reasons.items()
        ]
        if mapping(deployment.get("status")).get("observedGeneration") != metadata(deployment)["generation"]:
            observed = {"observedGeneration": metadata(deployment)["generation"]}
            yield {"status": {**observed, **counts, "conditions": conditions}}, "status"

    def _seen(self, obj: Object) -> int:
        wanted, name = integer(spec(obj).get("replicas")), key(obj).name
        self.most_members[name] = max(wanted, self.most_members.get(name, 0))
        return wanted


def _unless_said(obj: Object, status: Object) -> Iterator[tuple[Object, str]]:
    if not status.items() <= mapping(obj.get("status")).items():
        yield {"status": status}, "status"


def _answer(obj: Object) -> Iterator[tuple[Object, str]]:
    """Of an extension."""
    if keys.OPERATION not in annotations(obj):
        return
    version = metadata(obj)["resourceVersion"]
    yield {"metadata": {"annotations": {keys.OPERATION: None}, "resourceVersion": version}}, ""
    said = {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "played"}
    done = {**said, "lastUpdateTime": format_time(utc_now())}
    yield {"status": {"lastOperation": done, "observedGeneration": metadata(obj)["generation"]}}, "status"


def _applied(managed: Object) -> Iterator[tuple[Object, str]]:
    """One of the Shoot's; those of the seed have a resource manager of their own."""
    generation = metadata(managed)["generation"]
    if spec(managed).get("class") or mapping(managed.get("status")).get("observedGeneration") == generation:
        return
    now = format_time(utc_now())
    times = {"lastTransitionTime": now, "lastUpdateTime": now}
    conditions = [
        {"type": each, "status": status, "reason": "Played", "message": "played", **times}
        for each, status in RESOURCES_GOOD.items()
    ]
    yield {"status": {"observedGeneration": generation, "conditions": conditions}}, "status"


def _with_token(secret: Object, *, token: str) -> Iterator[tuple[Object, str]]:
    meta, notes = mapping(metadata(secret).get("labels")), annotations(secret)
    if meta.get(keys.PURPOSE) != keys.PURPOSE_TOKEN_REQUESTOR or keys.TOKEN_RENEW_TIMESTAMP in notes:
        return
    data = {"token": _encoded(token.encode())}
    if kubeconfig := string_map(secret.get("data")).get("kubeconfig"):
        config = yaml.safe_load(base64.b64decode(kubeconfig))
        config["users"][0]["user"] = {"token": token}
        data = {"kubeconfig": _encoded(yaml.safe_dump(config).encode())}
    renewal = format_time(utc_now() + timedelta(hours=12))
    yield {"data": data, "metadata": {"annotations": {keys.TOKEN_RENEW_TIMESTAMP: renewal}}}, ""


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
