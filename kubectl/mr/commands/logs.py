"""`kubectl mr logs`: entries about one ManagedResource in the logs of the agent's pods.

The holder of the agent's Lease is named after its pod. Its replicas are read, too: they may have led before.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import orjson

from gardener.api.kinds import MANAGED_RESOURCES
from kube.errors import KubeError
from kube.objects import Key, Object, key, labels
from kube.resources import PODS
from kube.runtime.client import Client, Selection
from kubectl import output
from kubectl.errors import UserError
from kubectl.mr import managed_resources, parameters
from kubectl.mr.agents import leases_in, may_handle
from kubectl.options import seconds_of
from kubectl.session import Session, on_cluster
from kubectl.style import DIM, GREEN, RED, Line, Word

_MOST_LINES = 10_000
_TEMPLATE_HASH = "pod-template-hash"
_CONTAINER = "kubectl.kubernetes.io/default-container"
_SAID = frozenset(
    (
        *("level", "ts", "msg", "logger", "controller", "controllerKind", "controllerGroup", "reconcileID"),
        *("name", "namespace", MANAGED_RESOURCES.kind),
    )
)
"""Fields of an entry that are the same in all, or have a place of their own."""


@click.command
@parameters.name
@click.option(
    "--tail",
    type=click.IntRange(0, _MOST_LINES),
    metavar="LINES",
    default=100,
    show_default=True,
    help="Maximum number of lines.",
)
@click.option("--since", metavar="DURATION", default="", help="Only entries newer than this duration, such as 10m.")
@click.option("--follow", "-f", is_flag=True, help="Follow the logs.")
@click.option("--raw", is_flag=True, help="Print unchanged log lines.")
@click.option(
    "--agent-namespace", metavar="NAME", default="", help="Namespace of the agent; default: namespace of its Lease."
)
@on_cluster(target=False)
async def command(
    session: Session, *, name: str, tail: int, since: str, follow: bool, raw: bool, agent_namespace: str
) -> None:
    """Requires the permission to list Leases, and to read pods and their logs."""
    seconds = f"{seconds_of(since):.0f}" if since else ""
    managed_resource = await managed_resources.named(session, name)
    pods = await _pods(session, managed_resource, agent_namespace)
    reader = _Reader(session.source.client, key(managed_resource), {"sinceSeconds": seconds} if seconds else {})
    read = await asyncio.gather(*(reader.last(pod, tail) for pod in pods))
    found = sorted((entry for entries in read for entry in entries), key=lambda entry: entry.time)
    shown = found[len(found) - min(tail, len(found)) :]
    for entry in shown:
        _show(entry, raw=raw)
    if follow:
        await asyncio.gather(*(_follow(reader, pod, entries, raw=raw) for pod, entries in zip(pods, read, strict=True)))
    elif not shown:
        output.waiting(f"{', '.join(str(key(pod)) for pod in pods)}: nothing about {key(managed_resource)}")


async def _pods(session: Session, managed_resource: Object, namespace: str) -> list[Object]:
    """Pods of the agent in charge: its leader, and the leader's replicas. Raises UserError."""
    places = [namespace] if namespace else [key(managed_resource).namespace, ""]
    for place in places:
        leases = [lease for lease in await leases_in(session, place) if may_handle(lease, managed_resource)]
        holders = [Key(key(lease).namespace, _pod_name(lease)) for lease in leases if _pod_name(lease)]
        if holders:
            break
    else:
        raise UserError("no agent has a Lease for its class", hint="kubectl mr check shows more; see --agent-namespace")
    found: dict[str, Object] = {}
    for holder in holders:
        leader = await session.source.client.find(PODS, holder)
        if leader is not None:
            found |= {str(key(pod)): pod for pod in await _replicas(session.source.client, leader)}
    if not found:
        names = ", ".join(map(str, holders))
        raise UserError(f"the agent {names} is not a pod of this cluster", hint="see the log of its process")
    return list(found.values())


def _pod_name(lease: Object) -> str:
    """Name of the holder's pod: its identity is the host name and a random part."""
    holder: str = (lease.get("spec") or {}).get("holderIdentity") or ""
    return holder.rpartition("_")[0]


async def _replicas(client: Client, leader: Object) -> Sequence[Object]:
    of_template = labels(leader).get(_TEMPLATE_HASH)
    if not of_template:
        return [leader]
    selection = Selection(namespace=key(leader).namespace, label_selector=f"{_TEMPLATE_HASH}={of_template}")
    return await client.list(PODS, selection)


@dataclass(frozen=True, slots=True)
class Entry:
    text: str
    time: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Reader:
    client: Client
    about: Key
    parameters: Mapping[str, str]

    async def last(self, pod: Object, count: int) -> list[Entry]:
        found: deque[Entry] = deque(maxlen=count)
        try:
            async for entry in self._entries(pod, self.parameters):
                found.append(entry)
        except KubeError as error:
            output.warn(f"the log of pod {key(pod)} can't be read: {error}")
        return list(found)

    async def following(self, pod: Object) -> AsyncIterator[Entry]:
        async for entry in self._entries(pod, {"follow": "true", "sinceSeconds": "10"}):
            yield entry

    async def _entries(self, pod: Object, parameters: Mapping[str, str]) -> AsyncIterator[Entry]:
        path = PODS.path(namespace=key(pod).namespace, name=key(pod).name, subresource="log")
        async with self.client.lines(path, params={**parameters, "container": container_of(pod)}) as lines:
            async for line in lines:
                entry = entry_of(line.decode(errors="replace"))
                if is_about(entry, self.about):
                    yield entry


async def _follow(reader: _Reader, pod: Object, shown: Sequence[Entry], *, raw: bool) -> None:
    last = shown[-1].time if shown else ""
    async for entry in reader.following(pod):
        if entry.time > last:
            _show(entry, raw=raw)


def container_of(pod: Object) -> str:
    """Container that kubectl would choose by default."""
    named = ((pod.get("metadata") or {}).get("annotations") or {}).get(_CONTAINER)
    containers = (pod.get("spec") or {}).get("containers") or [{}]
    return str(named or containers[0].get("name") or "")


def entry_of(text: str) -> Entry:
    """Parse a line of the log: JSON, or text with fields in JSON after the last tab."""
    if text.startswith("{"):
        fields = _object_in(text)
        return Entry(text, str(fields.get("ts") or ""), fields)
    time, *columns = text.split("\t")
    fields = _object_in(columns.pop()) if columns and columns[-1].startswith("{") else {}
    level, message = (columns[0].lower(), columns[-1]) if columns else ("", text)
    return Entry(text, time, {**fields, "level": level, "msg": message})


def _object_in(text: str) -> Mapping[str, Any]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def is_about(entry: Entry, about: Key) -> bool:
    return entry.fields.get(MANAGED_RESOURCES.kind) == {"namespace": about.namespace, "name": about.name}


def line_of(entry: Entry) -> Line:
    """Columns of an entry: time, level, message, and the other fields."""
    fields = entry.fields
    level = str(fields.get("level") or "")
    rest = (f" {name}={_value(value)}" for name, value in fields.items() if name not in _SAID)
    marked = Word(level, RED if level == "error" else GREEN)
    return [Word(entry.time, DIM), " ", marked, " ", str(fields.get("msg") or ""), *rest]


def _value(value: Any) -> str:
    return value if isinstance(value, str) and " " not in value else orjson.dumps(value).decode()


def _show(entry: Entry, *, raw: bool) -> None:
    output.show([[entry.text] if raw else line_of(entry)])
