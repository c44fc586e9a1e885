"""A round deletes exactly what is labelled, old enough, and referred to by nothing in its namespace.

The cluster is this file's own, since a round is about all namespaces.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.resource_manager.garbage_collector import USERS, Reconciler, declare
from config.resource_manager.controllers import Controllers, GarbageCollector
from devcluster.cluster import Cluster
from gardener.keys import GARBAGE_COLLECTABLE, REFERENCE_PREFIX
from gardener.references import inject_annotations
from kit.controllers import counted, run_controller
from kit.eventually import soon
from kit.kinds import definition, definition_path, serve
from kit.managed_resources import install_crd
from kit.objects import obj
from kit.world import connected, find_at
from kube.clock import parse_time
from kube.errors import NotFound
from kube.objects import Key, Object, labels, metadata
from kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS
from kube.runtime.client import Client, Selection
from kube.runtime.controller import ReconcileError, RequeueAfter
from kube.runtime.server_clock import ServerClock
from kube.runtime.transport import Transport

ROUND = Key("", "round")
RESOURCES = {"configmap": CONFIG_MAPS, "secret": SECRETS}
USER = {resource.kind: resource for resource in USERS}
CANDIDATES = 600
"""In three namespaces; a tenth is in use."""


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        install_crd(own)
        yield own


def rounds(client: Client, now: datetime, *namespaces: str, dry_run: bool = False) -> Reconciler:
    settings = GarbageCollector(minimum_object_lifetime=600, dry_run=dry_run, sync_period=3600)
    return Reconciler(client=client, settings=settings, namespaces=namespaces, utcnow=lambda: now)


def candidate(kind: str, name: str, namespace: str, label: str | None = "true") -> Object:
    marks = {} if label is None else {GARBAGE_COLLECTABLE: label}
    return obj(RESOURCES[kind], name, namespace=namespace, labels=marks, immutable=True)


def user(kind: str, name: str, namespace: str, pod: Object | None = None) -> Object:
    """An object of one of the kinds that refer to others, that does nothing in a cluster without nodes."""
    spec = {"containers": [{"name": "c", "image": "i"}], **(pod or {})}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    job = {"template": {"spec": {**spec, "restartPolicy": "Never"}}, "suspend": True}
    specs: dict[str, Object] = {
        "Deployment": {"replicas": 0, "selector": selector, "template": template},
        "StatefulSet": {"replicas": 0, "selector": selector, "template": template, "serviceName": name},
        "DaemonSet": {"selector": selector, "template": template},
        "Job": job,
        "Pod": {**spec, "schedulerName": "none"},
        "CronJob": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job}},
        "ManagedResource": {"class": "unused", "secretRefs": []},
        "Prometheus": spec,
    }
    return obj(USER[kind], name, namespace=namespace, spec=specs[kind])


PLACES: dict[str, Sequence[Any]] = {
    "configmap": [
        lambda n: {"initContainers": [{"name": "i", "image": "i", "envFrom": [{"configMapRef": {"name": n}}]}]},
        lambda n: {"containers": [{"name": "c", "image": "i", "env": [_variable("configMapKeyRef", n)]}]},
        lambda n: {"volumes": [{"name": "v", "configMap": {"name": n}}]},
        lambda n: {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": n}}]}}]},
    ],
    "secret": [
        lambda n: {"initContainers": [{"name": "i", "image": "i", "env": [_variable("secretKeyRef", n)]}]},
        lambda n: {"containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": n}}]}]},
        lambda n: {"volumes": [{"name": "v", "secret": {"secretName": n}}]},
        lambda n: {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": n}}]}}]},
        lambda n: {"imagePullSecrets": [{"name": n}]},
    ],
}


def _variable(source: str, name: str) -> Object:
    return {"name": "A", "valueFrom": {source: {"name": name, "key": "k"}}}


def user_of(number: int, kind: str, name: str, namespace: str) -> Object:
    """One of the ways to use an object: each kind with each place, one after the other."""
    kinds = [each for each in USER if each not in {"ManagedResource", "Prometheus"}]
    ways = [(each, place) for place in PLACES[kind] for each in kinds]
    if number % 20 == 17 and kind == "secret":
        found = user("ManagedResource", f"{kind}-{name}", namespace)
        found["spec"]["secretRefs"] = [{"name": name}]
    elif number % 20 == 19:
        found = user("Prometheus", f"{kind}-{name}", namespace, PLACES[kind][2](name))
    else:
        user_kind, place = ways[number // 2 % len(ways)]
        found = user(user_kind, f"{kind}-{name}", namespace, place(name))
    return inject_annotations(found)


async def create_all(client: Client, objects: Sequence[Object]) -> list[Object]:
    at_once = asyncio.Semaphore(20)
    known = {resource.kind: resource for resource in (*RESOURCES.values(), *USERS)}

    async def create(obj: Object) -> Object:
        async with at_once:
            return await client.create(known[obj["kind"]], obj)

    return await asyncio.gather(*map(create, objects))


async def present(client: Client, *namespaces: str) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of what is there of what tests make."""
    return {
        (kind, metadata(obj)["namespace"], metadata(obj)["name"])
        for kind, resource in RESOURCES.items()
        for namespace in namespaces
        for obj in await client.list(resource, Selection(namespace))
        if GARBAGE_COLLECTABLE in labels(obj) or metadata(obj)["name"].startswith("t-")
    }


def created_at(objects: Sequence[Object]) -> datetime:
    return max(parse_time(metadata(obj)["creationTimestamp"]) for obj in objects)


async def next_second(after: datetime) -> None:
    while datetime.now(UTC) < after + timedelta(seconds=1.5):
        await asyncio.sleep(0.05)


def collected(result: str) -> float:
    name = "resource_manager_garbage_collector_objects_total"
    return sum(counted(name, kind=kind, result=result) for kind in RESOURCES)


async def create_namespace(client: Client, name: str) -> None:
    await client.create(NAMESPACES, obj("Namespace", name))


async def create_namespace_for_pods(client: Client, name: str) -> None:
    """Pods are refused until the controllers have made the ServiceAccount of their namespace."""
    await create_namespace(client, name)
    path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    await soon(lambda: client.read(path), path, passing=(NotFound,))


async def test_the_examples_of_the_rules_come_out_as_described(own_cluster: Cluster) -> None:
    here, there = "rules", "rules-other"
    async with connected(own_cluster) as client:
        for namespace in (here, there):
            await create_namespace_for_pods(client, namespace)
        old = await create_all(
            client,
            [
                candidate("configmap", "test-1234", here),
                candidate("configmap", "test-5678", here),
                *(candidate("secret", f"s{number}", here) for number in (1, 3, 4, 5, 6)),
                candidate("secret", "s7", here, "True"),
                candidate("secret", "t-unlabelled", here, None),
            ],
        )
        users = {
            "by-pod": ("Pod", here, {f"{REFERENCE_PREFIX}configmap-82a3537f": "test-5678"}),
            "elsewhere": ("Deployment", there, {f"{REFERENCE_PREFIX}secret-1": "s3"}),
            "three-parts": ("Deployment", here, {f"{REFERENCE_PREFIX}secret-a-b": "s4"}),
            "other-kind": ("Deployment", here, {f"{REFERENCE_PREFIX}configmap-12345678": "s6"}),
            "template": ("Deployment", here, {}),
        }
        made = []
        for name, (kind, namespace, annotated) in users.items():
            obj = user(kind, name, namespace)
            obj["metadata"]["annotations"] = annotated
            if name == "template":
                obj["spec"]["template"]["metadata"]["annotations"] = {f"{REFERENCE_PREFIX}secret-1": "s5"}
            made.append(obj)
        await create_all(client, made)
        boundary = created_at(old)
        await next_second(boundary)
        await create_all(client, [candidate("secret", "s2", here)])

        result = await rounds(client, boundary + timedelta(minutes=10)).reconcile(ROUND)

        assert result == RequeueAfter(3600)
        kept = {("configmap", "test-5678"), ("secret", "s2"), ("secret", "s7"), ("secret", "t-unlabelled")}
        assert {(kind, name) for kind, _, name in await present(client, here)} == kept


async def test_exactly_the_unreferenced_old_ones_go(own_cluster: Cluster) -> None:
    namespaces = ["many-1", "many-2", "many-3"]
    async with connected(own_cluster) as client:
        serve(own_cluster, USER["Prometheus"])
        for namespace in namespaces:
            await create_namespace_for_pods(client, namespace)
        names = [
            (kind, namespaces[number % 3], f"o-{number}")
            for number in range(CANDIDATES // 2)
            for kind in ("configmap", "secret")
        ]
        old = await create_all(client, [candidate(kind, name, namespace) for kind, namespace, name in names])
        used = [names[number * 10 + number % 2] for number in range(CANDIDATES // 10)]
        await create_all(
            client, [user_of(number, kind, name, namespace) for number, (kind, namespace, name) in enumerate(used)]
        )
        boundary = created_at(old)
        await next_second(boundary)
        young = [("secret", namespaces[0], "young"), ("configmap", namespaces[1], "young")]
        await create_all(client, [candidate(kind, name, namespace) for kind, namespace, name in young])
        collecting = rounds(client, boundary + timedelta(minutes=10))
        deleted, in_use = collected("deleted"), collected("in_use")

        await collecting.reconcile(ROUND)

        assert await present(client, *namespaces) == {*used, *young}
        assert collected("deleted") - deleted >= len(names) - len(used)
        assert collected("in_use") - in_use >= len(used)
        await collecting.reconcile(ROUND)
        assert await present(client, *namespaces) == {*used, *young}


async def test_nothing_goes_while_a_kind_that_may_refer_to_it_is_not_served(own_cluster: Cluster) -> None:
    async with connected(own_cluster) as client:
        prometheus = USER["Prometheus"]
        serve(own_cluster, prometheus)
        await create_namespace(client, "unserved")
        await create_all(client, [candidate("secret", "a", "unserved")])
        (version,) = definition(prometheus)["spec"]["versions"]
        own_cluster.api.patch(definition_path(prometheus), {"spec": {"versions": [{**version, "served": False}]}})
        await soon(
            lambda: own_cluster.api.raw("GET", prometheus.path())[0] == 404, "Prometheuses not to be served any more"
        )
        collecting = rounds(client, datetime.now(UTC) + timedelta(hours=1), "unserved")
        with pytest.raises(ReconcileError, match=f"{prometheus.plural}.{prometheus.group} defines this kind"):
            await collecting.reconcile(ROUND)
        own_cluster.api.delete(definition_path(prometheus))
        await soon(lambda: find_at(own_cluster, definition_path(prometheus)) is None, "the kind to be gone")
        await collecting.reconcile(ROUND)
        assert await present(client, "unserved") == set()


async def test_a_dry_run_deletes_nothing(own_cluster: Cluster) -> None:
    async with connected(own_cluster) as client:
        await create_namespace(client, "dry")
        await create_all(client, [candidate("secret", "a", "dry"), candidate("configmap", "b", "dry")])
        before = collected("dry_run")
        await rounds(client, datetime.now(UTC) + timedelta(hours=1), "dry", dry_run=True).reconcile(ROUND)
        assert await present(client, "dry") == {("secret", "dry", "a"), ("configmap", "dry", "b")}
        assert collected("dry_run") == before + 2


async def test_what_is_outside_the_namespaces_of_the_connection_is_left_alone(own_cluster: Cluster) -> None:
    async with connected(own_cluster) as client:
        for namespace in ("ours", "not-ours"):
            await create_namespace(client, namespace)
            await create_all(client, [candidate("secret", "a", namespace)])
        await rounds(client, datetime.now(UTC) + timedelta(hours=1), "ours").reconcile(ROUND)
        assert await present(client, "ours", "not-ours") == {("secret", "not-ours", "a")}


async def test_nothing_but_candidates_is_read_if_there_are_none(own_cluster: Cluster) -> None:
    async with connected(own_cluster, "lonely-collector") as client:
        await create_namespace(client, "empty")
        with contextlib.closing(own_cluster.audit()) as audit:
            await rounds(client, datetime.now(UTC) + timedelta(hours=1), "empty").reconcile(ROUND)
            found = audit.count(since=0, user_agent="lonely-collector")
        assert found == {("list", "secrets"): 1, ("list", "configmaps"): 1}


async def test_the_controller_begins_with_a_round(own_cluster: Cluster) -> None:
    async with connected(own_cluster) as client:
        await create_namespace(client, "start")
        await create_all(client, [candidate("secret", "a", "start")])
        await next_second(datetime.now(UTC))
        controllers = Controllers(garbage_collector=GarbageCollector(enabled=True, minimum_object_lifetime=0.0))

        async def is_empty() -> bool:
            return not await present(client, "start")

        async with run_controller(declare, client, "start", controllers=controllers):
            await soon(is_empty, "the round at the start")


async def test_nothing_is_old_as_long_as_one_clock_denies_it(own_cluster: Cluster) -> None:
    async with connected(own_cluster) as client:
        await create_namespace(client, "skewed")
        await create_all(client, [candidate("secret", "a", "skewed")])
        assert isinstance(client.transport, Transport)
        settings = GarbageCollector(enabled=True, minimum_object_lifetime=0.0, sync_period=0.1)
        behind = client.transport.clock = ServerClock(lambda: datetime.now(UTC) - timedelta(days=1))
        async with run_controller(declare, client, "skewed", controllers=Controllers(garbage_collector=settings)):
            await soon(lambda: datetime.now(UTC) - behind() < timedelta(minutes=1), "the API server's time")
        assert await present(client, "skewed")
        client.transport.clock = ServerClock()

        async def is_empty() -> bool:
            return not await present(client, "skewed")

        async with run_controller(declare, client, "skewed", controllers=Controllers(garbage_collector=settings)):
            await soon(is_empty, "the round")
