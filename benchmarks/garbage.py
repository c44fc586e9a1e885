"""A round of the garbage collector over many ConfigMaps and Secrets; a tenth is in use, in all possible ways."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent.resource_manager.garbage_collector.candidates import RESOURCES
from agent.resource_manager.garbage_collector.reconcile import USERS
from benchmarks import report
from benchmarks.program import USER_AGENT, Agent
from benchmarks.report import Table, number
from benchmarks.workload import create_namespace, install_crd
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError
from gardener.keys import GARBAGE_COLLECTABLE
from gardener.references.annotate import inject_annotations
from gardener.references.keys import Name
from kube.client import Client, Form, Selection, Transport
from kube.clock import parse_time
from kube.connection import load_kubeconfig
from kube.errors import NotFound
from kube.objects import Object, metadata
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS

_NAMESPACES = 10
_YOUNG = 100
_AT_ONCE = 50
_MINIMUM_AGE = 30.0
_SECONDS = 900.0
_OBJECTS = "resource_manager_garbage_collector_objects_total{"
_COLUMNS = ("a round over", "calls", "s", "CPU s", "RSS (peak) MiB", "")
_USER = {resource.kind: resource for resource in USERS}
_POD_KINDS = [kind for kind in _USER if kind not in {"ManagedResource", "Prometheus"}]


async def measure(*, candidates: int) -> Table:
    collector = {"enabled": True, "minimumObjectLifetime": f"{_MINIMUM_AGE:.0f}s", "syncPeriod": "1h"}
    controllers = {"garbageCollector": collector}
    async with Cluster() as cluster, Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        client = Client(transport, user_agent="benchmark")
        await asyncio.to_thread(install_crd, cluster)
        await _install_prometheus(client)
        used, unused = await _fill(client, candidates)
        with (
            tempfile.TemporaryDirectory() as directory,
            Agent(cluster, Path(directory), controllers=controllers) as agent,
        ):
            audit = cluster.audit()
            try:
                young = await _create(client, [_object(name) for name in _names(_YOUNG, "young")])
                left = used | {_name(obj) for obj in young}
                kinds = f"{len(used) + len(unused)}, {len(used)} of them in use"
                rows = [
                    (kinds, *await _round(agent, audit, count=len(used | unused)), await _verdict(client, left, unused))
                ]
                await asyncio.to_thread(agent.stop)
                await asyncio.sleep(_MINIMUM_AGE)
                rows.append(
                    (
                        f"{len(left)}, all but {_YOUNG} in use",
                        *await _round(agent, audit, count=len(left)),
                        await _verdict(client, used, left - used),
                    )
                )
            finally:
                audit.close()
    note = (
        f"In {_NAMESPACES} namespaces, in use by {', '.join(_USER)}. {_YOUNG} more are too young in the first round."
        " CPU from the start of the process."
    )
    return Table(f"Garbage collection of {candidates} objects", _COLUMNS, rows, [note])


async def _round(agent: Agent, audit: Audit, *, count: int) -> Sequence[str]:
    mark = audit.mark()
    agent.start()
    await asyncio.to_thread(agent.wait_until_ready)
    began = time.monotonic()
    while await asyncio.to_thread(agent.metric, _OBJECTS) < count:
        if time.monotonic() - began > _SECONDS:
            raise DevclusterError(f"the round did not end within {_SECONDS:.0f} s; {agent.log_end()}")
        await asyncio.sleep(0.1)
    seconds = time.monotonic() - began
    calls = report.calls(audit.count(since=mark, user_agent=USER_AGENT))
    memory = f"{agent.resident_mib():.0f} ({agent.peak_mib():.0f})"
    return calls, number(seconds), number(agent.cpu_seconds(), 2), memory


async def _verdict(client: Client, left: set[Name], gone: set[Name]) -> str:
    present = {
        Name(kind, metadata(obj)["namespace"], metadata(obj)["name"])
        for kind, resource in RESOURCES.items()
        for obj in await client.list(resource, Selection(label_selector=GARBAGE_COLLECTABLE), form=Form.METADATA)
    }
    if present == left:
        return f"exactly the {len(gone)} went"
    return f"WRONG: {len(present & gone)} left over, {len(left - present)} missing"


# --- what there is


async def _fill(client: Client, count: int) -> tuple[set[Name], set[Name]]:
    """Returns what is in use and what is not, all old enough."""
    for number_ in range(_NAMESPACES):
        await create_namespace(client, _namespace(number_))
    names = list(_names(count, "o"))
    created = await _create(client, [_object(name) for name in names])
    used = [names[i * 10 + i % 2] for i in range(count // 10)]
    await _create(client, [_user(i, name) for i, name in enumerate(used)])
    newest = max(parse_time(metadata(obj)["creationTimestamp"]) for obj in created)
    ready = newest + timedelta(seconds=_MINIMUM_AGE)
    await asyncio.sleep(max(0.0, (ready - datetime.now(UTC)).total_seconds() + 1))
    return set(used), set(names) - set(used)


def _names(count: int, prefix: str) -> Iterator[Name]:
    for number_ in range(count):
        kind = ("configmap", "secret")[number_ % 2]
        yield Name(kind, _namespace(number_ // 2 % _NAMESPACES), f"{prefix}-{number_}")


def _namespace(number_: int) -> str:
    return f"garbage-{number_}"


def _name(obj: Object) -> Name:
    return Name(obj["kind"].lower(), metadata(obj)["namespace"], metadata(obj)["name"])


def _object(name: Name) -> Object:
    meta = {"name": name.name, "namespace": name.namespace, "labels": {GARBAGE_COLLECTABLE: "true"}}
    return {"apiVersion": "v1", "kind": RESOURCES[name.kind].kind, "metadata": meta}


def _user(number_: int, used: Name) -> Object:
    """One of the ways: kinds and places take turns."""
    places = _places(used)
    kind, place = _POD_KINDS[number_ // 2 % len(_POD_KINDS)], places[number_ // 12 % len(places)]
    if number_ % 20 == 19:
        kind = "Prometheus"
    elif number_ % 20 == 17 and used.kind == "secret":
        kind = "ManagedResource"
    spec = {"containers": [{"name": "c", "image": "i"}], **place}
    labels = {"app": used.name}
    workload = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}
    job = {"template": {"spec": {**spec, "restartPolicy": "Never"}}, "suspend": True}
    specs: dict[str, Object] = {
        "Deployment": {"replicas": 0, **workload},
        "StatefulSet": {"replicas": 0, "serviceName": "s", **workload},
        "DaemonSet": workload,
        "Job": job,
        "Pod": {**spec, "schedulerName": "nobody"},
        "CronJob": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job}},
        "ManagedResource": {"class": "nobodys", "secretRefs": [{"name": used.name}]},
        "Prometheus": {"volumes": [], **place},
    }
    meta = {"name": used.name, "namespace": used.namespace}
    return inject_annotations(
        {"apiVersion": _USER[kind].api_version, "kind": kind, "metadata": meta, "spec": specs[kind]}
    )


def _places(used: Name) -> Sequence[Object]:
    name = {"name": used.name}
    source = "secret" if used.kind == "secret" else "configMap"
    volume = {"secret": {"secretName": used.name}} if source == "secret" else {"configMap": name}
    variable = {"name": "A", "valueFrom": {f"{source}KeyRef": {**name, "key": "k"}}}
    return (
        {"volumes": [{"name": "v", **volume}]},
        {"volumes": [{"name": "v", "projected": {"sources": [{source: name}]}}]},
        {"containers": [{"name": "c", "image": "i", "envFrom": [{f"{source}Ref": name}]}]},
        {"initContainers": [{"name": "i", "image": "i", "env": [variable]}]},
    )


async def _create(client: Client, objects: Sequence[Object]) -> list[Object]:
    at_once = asyncio.Semaphore(_AT_ONCE)
    known = {resource.kind: resource for resource in (*RESOURCES.values(), *USERS)}

    async def create(obj: Object) -> Object:
        async with at_once:
            return await client.create(known[obj["kind"]], obj)

    return await asyncio.gather(*map(create, objects))


async def _install_prometheus(client: Client) -> None:
    resource = _USER["Prometheus"]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"kind": resource.kind, "plural": resource.plural, "singular": "prometheus"},
            "versions": [{"name": resource.version, "served": True, "storage": True, "schema": schema}],
        },
    }
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    await _served(lambda: client.list_page(resource, Selection()))


async def _served(ask: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                await ask()
                return
            except NotFound:
                await asyncio.sleep(0.1)
