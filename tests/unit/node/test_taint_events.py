"""What a Node waits for is reported when it changes, and not too often."""

from collections.abc import Mapping
from typing import Any

import pytest

from agent.resource_manager.node.critical_components.reconcile import (
    CSI_NODES_VIEW,
    DAEMON_SETS_VIEW,
    NODES_VIEW,
    PODS_VIEW,
    NodeStores,
    Reconciler,
    Waits,
)
from gardener import keys
from kit.clock import FakeClock
from kit.objects import obj
from kube.objects import Key, Object
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.connection import Connection, Fixed
from kube.runtime.controller import Done, RequeueAfter
from kube.runtime.events import EventRecorder, EventType
from kube.runtime.transport import Transport
from kube.runtime.watch import Deleted, Present

NODE = Key("", "w1")
BACKOFF = 10.0


class Recorder(EventRecorder):
    """Keeps what is reported."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, component="test")
        self.reported: list[tuple[str, str]] = []

    def event(self, obj: Mapping[str, Any], type_: EventType, reason: str, message: str, *, reporter: str = "") -> None:
        assert obj == {"apiVersion": "v1", "kind": "Node", "name": "w1", "uid": "u"}
        assert reporter == "node-critical-components-controller"
        assert type_ == "Warning"
        self.reported.append((reason, message.rpartition(": ")[2]))


class World:
    def __init__(self, *, backoff: float = BACKOFF) -> None:
        self.clock = FakeClock(0.0)
        # No request is made: all that is reported comes from memory.
        nowhere = Connection("https://nowhere.invalid", tls=None, credentials=Fixed(None), identity=())
        client = Client(Transport(nowhere), user_agent="")
        self.stores = NodeStores(
            nodes=Store(NODES_VIEW),
            pods=Store(PODS_VIEW),
            daemon_sets=Store(DAEMON_SETS_VIEW),
            csi_nodes=Store(CSI_NODES_VIEW),
        )
        self._version = 0
        self._pods = self.stores.pods.source("")
        self._nodes = self.stores.nodes.source("")
        self.recorder = Recorder(client)
        self.waits = Waits(now=self.clock)
        self.reconciler = Reconciler(
            client=client, stores=self.stores, waits=self.waits, recorder=self.recorder, backoff=backoff
        )
        taint = {"key": keys.CRITICAL_COMPONENTS_NOT_READY, "effect": "NoSchedule"}
        self._nodes.apply(Present(self._object("Node", "w1", spec={"taints": [taint]})))
        self.waits.begins("w1", seen=True)

    def _object(self, kind: str, name: str, **fields: Any) -> Object:
        self._version += 1
        return obj(f"v1 {kind}", name, uid="u", resourceVersion=str(self._version), **fields)

    def unready(self, name: str) -> None:
        self._pods.apply(Present(self._object("Pod", f"kube-system/{name}", spec={"nodeName": "w1"})))

    def gone(self, name: str) -> None:
        self._pods.apply(Deleted(self._object("Pod", f"kube-system/{name}")))

    async def look(self) -> list[str]:
        """The names that are reported."""
        self.recorder.reported.clear()
        result = await self.reconciler.reconcile(NODE)
        assert isinstance(result, RequeueAfter | Done)
        return [names for _, names in self.recorder.reported]


@pytest.fixture
async def world() -> World:
    """What is waited for was reported once."""
    world = World()
    world.unready("a")
    assert await world.look() == ["kube-system/a"]
    return world


async def test_the_same_reason_is_reported_once(world: World) -> None:
    for _ in range(5):
        world.clock.now += 100
        assert await world.look() == []


async def test_a_new_reason_is_reported_when_the_last_is_old_enough(world: World) -> None:
    world.unready("b")
    world.clock.now += BACKOFF / 2
    assert await world.look() == []
    world.gone("a")
    world.clock.now += BACKOFF / 2
    assert await world.look() == ["kube-system/b"]


async def test_a_taint_that_comes_back_is_a_new_wait(world: World) -> None:
    world.waits.ends("w1")
    world.waits.begins("w1", seen=True)
    assert await world.look() == ["kube-system/a"]


@pytest.mark.parametrize(("backoff", "expected"), [(BACKOFF, RequeueAfter(BACKOFF)), (0.0, Done())])
async def test_a_node_that_waits_is_looked_at_again(backoff: float, expected: object) -> None:
    world = World(backoff=backoff)
    world.unready("a")
    assert await world.reconciler.reconcile(NODE) == expected


async def test_a_node_that_is_unknown_is_ignored() -> None:
    assert await World().reconciler.reconcile(Key("", "other")) == Done()
