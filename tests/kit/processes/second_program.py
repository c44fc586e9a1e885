"""A second program on the frame of the first, as small as one can be: `python -m tests.kit.processes.second_program`.

It greets: ConfigMaps with the label `example.com/greet` get a greeting as data. So do those of other clusters, each
while there is a Secret of its name with the label `example.com/kubeconfig`, and with an Event there.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from kube.objects import Key, Object, mapping, resource_version
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.cache import Change, Store, View
from kube.runtime.client import Client
from kube.runtime.connection import connection_of_kubeconfig
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, Queue, enqueue
from kube.runtime.predicates import changed_or_listed
from kube.runtime.priorities import CHANGE
from process.clusters import Clusters, Endpoint
from process.composition import Composition, Parts
from process.configuration.blocks import (
    CacheSyncTimeout,
    ClientConnection,
    ElectingConfiguration,
    HTTPServer,
    LeaderElection,
    Server,
)
from process.configuration.component import Component
from process.configuration.fields import setting
from process.configuration.overrides import ClusterConnection
from process.controllers import Controllers
from process.program import Program, run


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllersBlock:
    cache_sync_timeout: CacheSyncTimeout = 120.0
    greeting: Annotated[str, setting("What ConfigMaps get.")] = "hello"


@dataclass(frozen=True, kw_only=True)
class Connections:
    client_connection: Annotated[ClientConnection, setting("Garden.")] = field(default_factory=ClientConnection)
    shoot_connection: Annotated[ClientConnection, setting("Shoots.")] = field(default_factory=ClientConnection)


@dataclass(frozen=True, slots=True, kw_only=True)
class GreeterConfiguration(ElectingConfiguration, Connections):
    leader_election: Annotated[LeaderElection, setting("Election.")] = field(
        default_factory=partial(LeaderElection, resource_name="greeter-leader-election", resource_namespace="garden")
    )
    server: Annotated[Server, setting("Servers.")] = field(
        default_factory=partial(Server, health_probes=HTTPServer(port=2718), metrics=HTTPServer(port=2719))
    )
    controllers: Annotated[ControllersBlock, setting("Controllers.")] = field(default_factory=ControllersBlock)


@dataclass(frozen=True, slots=True)
class Reconciler:
    client: Client
    greeting: str

    async def reconcile(self, key: Key) -> Result:
        body = {"data": {"greeting": self.greeting}}
        await self.client.patch(CONFIG_MAPS, key, body)
        return Done()


@dataclass(frozen=True, slots=True)
class ShootReconciler:
    """Keys have the name of a cluster in the place of a namespace."""

    clusters: Clusters
    greeting: str

    async def reconcile(self, key: Key) -> Result:
        if (shoot := self.clusters.get(key.namespace)) is not None:
            (namespace,) = shoot.namespaces
            body = {"data": {"greeting": self.greeting}}
            greeted = await shoot.client.patch(CONFIG_MAPS, Key(namespace, key.name), body)
            self.clusters.recorder(key.namespace).event(greeted, "Normal", "Greeted", self.greeting)
        return Done()


@dataclass(frozen=True, slots=True)
class Connector:
    """Connects clusters, replaces their credentials, and closes them, as kubeconfigs come, change and go."""

    clusters: Clusters
    settings: ClientConnection
    kubeconfigs: Store[str]
    queue: Queue
    connected: dict[str, str] = field(default_factory=dict)

    async def reconcile(self, key: Key) -> Result:
        name, kubeconfig = key.name, self.kubeconfigs.get(key)
        if kubeconfig is None:
            await self._close(name)
        elif self.connected.get(name) != kubeconfig:
            connection = connection_of_kubeconfig(kubeconfig.encode(), origin=f"of the Secret {key}")
            if name in self.connected:
                self.clusters.replace(name, connection)
            else:
                shoot = self.clusters.open(Endpoint((name,), connection, self.settings))
                greeted = shoot.caches.acquire(GREETED, needed_at_start=True)
                greeted.subscribe(partial(self._enqueue, name))
            self.connected[name] = kubeconfig
        return Done()

    async def close(self) -> None:
        for name in list(self.connected):
            await self._close(name)

    async def _close(self, name: str) -> None:
        if self.connected.pop(name, None) is not None:
            await self.clusters.close(name)

    def _enqueue(self, name: str, change: Change[int]) -> None:
        if change.new is not None:
            self.queue.add(Key(name, change.key.name), CHANGE)


GREETED = View(CONFIG_MAPS, resource_version, label_selector="example.com/greet")
KUBECONFIGS = View(SECRETS, lambda obj: decoded(obj, "kubeconfig"), label_selector="example.com/kubeconfig")


def decoded(secret: Object, entry: str) -> str:
    return base64.b64decode(mapping(secret.get("data")).get(entry) or "").decode()


def compose(base: Composition[GreeterConfiguration]) -> Parts:
    garden, clusters, greeting = base.clusters["garden"], base.clusters, base.config.controllers.greeting

    async def control_loops() -> Sequence[ControlLoop]:
        greeter = ControlLoop("greeter", kind=CONFIG_MAPS)
        greeter.watch(garden.caches, GREETED, enqueue(when=changed_or_listed))
        shoot_greeter = ControlLoop("shoot-greeter", kind=CONFIG_MAPS)
        connections = ControlLoop("connections", kind=SECRETS)
        kubeconfigs = connections.watch(garden.caches, KUBECONFIGS, enqueue(when=changed_or_listed))
        connector = Connector(clusters, base.config.shoot_connection, kubeconfigs, shoot_greeter.queue)
        connections.on_close(connector.close)
        return [
            greeter.reconciled_by(Reconciler(garden.client, greeting)),
            shoot_greeter.reconciled_by(ShootReconciler(clusters, greeting)),
            connections.reconciled_by(connector),
        ]

    return Parts(
        work=[Controllers(clusters, config=base.config, kinds_of=("garden",), compose=control_loops)],
    )


COMPONENT = Component(
    name="greeter",
    metrics_prefix="greeter",
    api_version="greeter.example.com/v1alpha1",
    kind="GreeterConfiguration",
    clusters=(ClusterConnection(name="garden", attribute="client_connection", variable="KUBECONFIG"),),
    configuration=lambda: GreeterConfiguration,
)

if __name__ == "__main__":
    run([Program(name="greeter", summary="Greets.", component=COMPONENT, compose=lambda: compose)], version="v1.2.3")
