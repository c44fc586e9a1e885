"""A round of the garbage collector over many ConfigMaps and Secrets; a tenth is in use, in all possible ways."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.resource_manager.garbage_collector import RESOURCES, USERS
from benchmarks import report
from benchmarks.measuring import Meter, connected, running
from benchmarks.program import Agent
from benchmarks.report import Table, number
from benchmarks.workload import create_namespace, each_of, install_definition
from devcluster.cluster import Cluster
from gardener.keys import GARBAGE_COLLECTABLE
from gardener.references import Name, inject_annotations
from kube.clock import parse_time
from kube.objects import Object, metadata
from kube.runtime.client import Client, Form, Selection
from localprocesses.local import wait_until

_NAMESPACES = 10
_YOUNG = 100
_MINIMUM_AGE = 30.0
_SECONDS = 900.0
_OBJECTS = "resource_manager_garbage_collector_objects_total{"
_COLUMNS = ("a round over", "calls", "s", "CPU s", "RSS (peak) MiB", "")
_USER = {resource.kind: resource for resource in USERS}
_POD_KINDS = [kind for kind in _USER if kind not in {"ManagedResource", "Prometheus"}]


async def measure(*, candidates: int) -> Table:
    collector = {"enabled": True, "minimumObjectLifetime": f"{_MINIMUM_AGE:.0f}s", "syncPeriod": "1h"}
    async with (
        running(controllers={"garbageCollector": collector}) as (cluster, agent, audit),
        connected(cluster) as (client, _),
    ):
        await asyncio.to_thread(_install_prometheus, cluster)
        used, unused = await _fill(client, candidates)
        young = await _create(client, [_object(name) for name in _names(_YOUNG, "young")])
        left = used | {_name(obj) for obj in young}
        meter = Meter(agent, audit)
        of = f"{len(used) + len(unused)}, {len(used)} of them in use"
        rows = [(of, *await _round(agent, meter, len(used | unused)), await _outcome(client, left, unused))]
        await asyncio.to_thread(agent.stop)
        await asyncio.sleep(_MINIMUM_AGE)
        of = f"{len(left)}, all but {_YOUNG} in use"
        rows.append((of, *await _round(agent, meter, len(left)), await _outcome(client, used, left - used)))
    note = (
        f"In {_NAMESPACES} namespaces, in use by {', '.join(_USER)}. {_YOUNG} more are too young in the first round."
        " CPU from the start of the process."
    )
    return Table(f"Garbage collection of {candidates} objects", _COLUMNS, rows, [note])


async def _round(agent: Agent, meter: Meter, count: int) -> Sequence[str]:
    meter.start(fresh=True)
    agent.start()
    began = await asyncio.to_thread(agent.wait_until_ready)
    ended = await asyncio.to_thread(
        wait_until,
        lambda: agent.metric(_OBJECTS) >= count,
        what="the end of the round",
        within=_SECONDS,
        pause=0.1,
        explain=agent.log_end,
    )
    phase = await meter.stop("round", quiet=0.0)
    return report.calls(phase.calls), number(ended - began), number(phase.cpu, 2), phase.memory


async def _outcome(client: Client, left: set[Name], gone: set[Name]) -> str:
    present = {
        Name(kind, metadata(obj)["namespace"], metadata(obj)["name"])
        for kind, resource in RESOURCES.items()
        for obj in await client.list(resource, Selection(label_selector=GARBAGE_COLLECTABLE), form=Form.METADATA)
    }
    if present == left:
        return f"exactly the {len(gone)} went"
    return f"WRONG: {len(present & gone)} left over, {len(left - present)} missing"


# --- objects


async def _fill(client: Client, count: int) -> tuple[set[Name], set[Name]]:
    """Create the objects, all old enough; return those in use and the others."""
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
    return {"apiVersion": "v1", "kind": RESOURCES[name.kind].kind, "metadata": meta, "immutable": True}


def _user(number_: int, used: Name) -> Object:
    """User of an object: kinds and places take turns."""
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
        "Pod": {**spec, "schedulerName": "unused"},
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
    known = {resource.kind: resource for resource in (*RESOURCES.values(), *USERS)}
    return await each_of(objects, lambda obj: client.create(known[obj["kind"]], obj))


def _install_prometheus(cluster: Cluster) -> None:
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
    install_definition(cluster, definition, resource)
