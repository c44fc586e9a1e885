"""A steady mixture of everything that the agent works on, with new names all the time.

Each stream creates, changes, or deletes the oldest object once there are enough, in turns and at a rhythm of its own.
So the number of objects is steady while all state by name comes and goes.
"""

import asyncio
import itertools
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

import aiohttp
import orjson

from benchmarks import nodes, tokens
from benchmarks.network_policies import namespace, service
from benchmarks.workload import Workload, create_namespace, managed_resource, objects_of, secret_of
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import GARBAGE_COLLECTABLE, TOKEN_EXPIRATION_DURATION
from kube.errors import KubeError
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, NAMESPACES, NODES, SECRETS, SERVICE_ACCOUNTS, SERVICES, Resource
from kube.runtime.client import Client

NAMESPACE = "soak"
_STANDING = 50
_OBJECTS = 8
_NODES = 20
_TOKENS = 30
_CLIENTS = 10
"""Number of namespaces whose pods each Service lets in."""
_LIFETIME = "10m"

Call = Callable[[str], Awaitable[object]]


class Step(NamedTuple):
    """Action that is repeated each `period` seconds."""

    name: str
    period: float
    act: Callable[[], Awaitable[object]]


class Flow:
    """Runs steps, and counts their outcomes by name."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    async def run(self, steps: Iterable[Step], seconds: float) -> None:
        end = time.monotonic() + seconds
        async with asyncio.TaskGroup() as tasks:
            for step in steps:
                tasks.create_task(self._repeat(step, end))

    async def _repeat(self, step: Step, end: float) -> None:
        while time.monotonic() < end:
            began = time.monotonic()
            await self.counted(step.name, step.act)
            await asyncio.sleep(max(0.0, step.period - (time.monotonic() - began)))

    async def counted(self, name: str, act: Callable[[], Awaitable[object]]) -> None:
        try:
            await act()
        except (KubeError, OSError, aiohttp.ClientError) as error:
            self.failed[f"{name}: {type(error).__name__}"] += 1
        else:
            self.done[name] += 1


class Stream:
    """Objects that are created, changed and deleted, at most `most` at once."""

    def __init__(self, name: str, period: float, *, most: int, create: Call, change: Call, delete: Call) -> None:
        self.step = Step(name, period, self._turn)
        self._most, self._create, self._change, self._delete = most, create, change, delete
        self._numbers = itertools.count()
        self._live: deque[str] = deque()

    async def clear(self) -> None:
        while self._live:
            await self._delete(self._live.popleft())

    async def _turn(self) -> None:
        number = next(self._numbers)
        if number % 3 == 1 and self._live:
            await self._change(random.choice(self._live))  # noqa: S311 - not a secret
        elif len(self._live) >= self._most:
            await self._delete(self._live.popleft())
        else:
            name = f"churn-{number}"
            self._live.append(name)
            await self._create(name)


class Load:
    """All streams, and the permanent objects."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.flow = Flow()
        self._standing = Workload(client, namespace=NAMESPACE, count=_STANDING, size=_OBJECTS)
        self._drifts = itertools.count()
        self._candidates = itertools.count()
        self._revisions = itertools.count(2)
        self._streams = self._make_streams()
        self.steps: Sequence[Step] = (
            *(stream.step for stream in self._streams),
            Step("drift", 2.0, self._drift),
            Step("garbage", 2.0, self._litter),
        )

    async def stand(self) -> None:
        """Create the permanent objects."""
        await create_namespace(self._client, NAMESPACE)
        for number in range(_CLIENTS):
            await self._client.create(NAMESPACES, namespace(f"client-{number}"))
        await self._standing.create_secrets()
        await self._standing.create()
        await nodes.make_components(self._client)
        await nodes.join(self._client, range(_NODES))
        for number in range(_TOKENS):
            await self._create_token(f"standing-{number}")
            await self._client.create(SERVICES, service(f"standing-{number}", NAMESPACE))

    async def clear(self) -> None:
        """Delete all but the permanent objects."""
        for stream in self._streams:
            await self.flow.counted(f"{stream.step.name}, cleared", stream.clear)

    # --- streams

    def _make_streams(self) -> Sequence[Stream]:
        client = self._client

        def patch_service(name: str) -> Awaitable[object]:
            ports = {"spec": {"ports": [{"port": 80, "targetPort": next(self._revisions) % 60_000 + 1}]}}
            return client.patch(SERVICES, Key(NAMESPACE, name), ports)

        def patch_token(name: str) -> Awaitable[object]:
            wanted = {TOKEN_EXPIRATION_DURATION: f"{next(self._revisions) % 600 + 600}s"}
            return client.patch(SECRETS, Key(NAMESPACE, f"token-{name}"), {"metadata": {"annotations": wanted}})

        def relabel(resource: Resource, name: str) -> Awaitable[object]:
            labels = {"metadata": {"labels": {"revision": str(next(self._revisions))}}}
            return client.patch(resource, name, labels)

        return (
            Stream(
                "ManagedResources",
                1.5,
                most=30,
                create=self._create_managed,
                change=lambda name: client.replace(SECRETS, self._secret(name)),
                delete=self._delete_managed,
            ),
            Stream(
                "Services",
                3.0,
                most=15,
                create=lambda name: client.create(SERVICES, service(name, NAMESPACE)),
                change=patch_service,
                delete=lambda name: client.delete(SERVICES, Key(NAMESPACE, name)),
            ),
            Stream(
                "tokens",
                4.0,
                most=20,
                create=self._create_token,
                change=patch_token,
                delete=self._delete_token,
            ),
            Stream(
                "namespaces",
                20.0,
                most=4,
                create=lambda name: client.create(NAMESPACES, namespace(name)),
                change=lambda name: relabel(NAMESPACES, name),
                delete=lambda name: client.delete(NAMESPACES, name),
            ),
            Stream(
                "nodes",
                10.0,
                most=8,
                create=lambda name: nodes.join(client, [_node_number(name)]),
                change=lambda name: relabel(NODES, f"node-{_node_number(name)}"),
                delete=lambda name: client.delete(NODES, f"node-{_node_number(name)}"),
            ),
        )

    def _secret(self, name: str) -> Object:
        number, version = int(name.rpartition("-")[2]) + 100_000, str(next(self._revisions))
        manifests = objects_of(number, _OBJECTS, namespace=NAMESPACE, version=version)
        return secret_of(name, NAMESPACE, b"".join(b"---\n" + orjson.dumps(each) + b"\n" for each in manifests))

    async def _create_managed(self, name: str) -> None:
        await self._client.create(SECRETS, self._secret(name))
        await self._client.create(MANAGED_RESOURCES, managed_resource(name, NAMESPACE))

    async def _delete_managed(self, name: str) -> None:
        await self._client.delete(MANAGED_RESOURCES, Key(NAMESPACE, name))
        await self._client.delete(SECRETS, Key(NAMESPACE, name))

    async def _create_token(self, name: str) -> None:
        await self._client.create(SECRETS, tokens.secret(name, NAMESPACE, _LIFETIME))

    async def _delete_token(self, name: str) -> None:
        await self._client.delete(SECRETS, Key(NAMESPACE, f"token-{name}"))
        await self._client.delete(SERVICE_ACCOUNTS, Key(NAMESPACE, name))

    async def _drift(self) -> None:
        await self._standing.drift(next(self._drifts) % (_STANDING * (_OBJECTS - 3)))

    async def _litter(self) -> None:
        """Create an object without references to it; the agent removes it."""
        name = f"garbage-{next(self._candidates)}"
        labels = {GARBAGE_COLLECTABLE: "true"}
        await self._client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}})


def _node_number(name: str) -> int:
    """Number of a Node, distinct from permanent ones; they come and go, so that addresses may be used again."""
    return 1000 + int(name.rpartition("-")[2]) % 10_000
