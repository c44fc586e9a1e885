"""A second program on the frame of the first, as small as one can be: `python -m tests.kit.processes.second_program`.

It greets: ConfigMaps with the label `example.com/greet` get a greeting as data.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from config.blocks import CacheSyncTimeout, ClientConnection, Configuration, HTTPServer, LeaderElection, Server
from config.component import Component
from config.fields import setting
from config.overrides import ClusterConnection
from kube.cache import View
from kube.client import Client
from kube.controller import Done, Result
from kube.loop import ControlLoop, changed_or_listed, enqueue
from kube.objects import Key, resource_version
from kube.resources import CONFIG_MAPS
from process.composition import Composition
from process.controllers import Controllers
from process.program import Program, run
from process.runner import Groups


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllersBlock:
    cache_sync_timeout: CacheSyncTimeout = 120.0
    greeting: Annotated[str, setting("What ConfigMaps get.")] = "hello"


@dataclass(frozen=True, kw_only=True)
class Connections:
    client_connection: Annotated[ClientConnection, setting("Garden.")] = field(default_factory=ClientConnection)


@dataclass(frozen=True, slots=True, kw_only=True)
class GreeterConfiguration(Configuration, Connections):
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
        await self.client.patch(CONFIG_MAPS, key.name, body, namespace=key.namespace)
        return Done()


def compose(base: Composition[GreeterConfiguration]) -> Groups:
    garden = base.clusters["garden"]

    async def control_loops() -> Sequence[ControlLoop]:
        loop = ControlLoop("greeter", kind=CONFIG_MAPS)
        view = View(CONFIG_MAPS, resource_version, label_selector="example.com/greet")
        loop.watch(garden.caches, view, enqueue(when=changed_or_listed))
        return [loop.reconciled_by(Reconciler(garden.client, base.config.controllers.greeting))]

    return base.groups(work=[Controllers(base.clusters, config=base.config, kinds_of=garden, compose=control_loops)])


COMPONENT = Component(
    name="greeter",
    metrics_prefix="greeter",
    api_version="greeter.example.com/v1alpha1",
    kind="GreeterConfiguration",
    clusters=(ClusterConnection(name="garden", attribute="client_connection", variable="KUBECONFIG"),),
    configuration=lambda: GreeterConfiguration,
)

if __name__ == "__main__":
    run([Program(name="greeter", summary="Greets.", component=COMPONENT, compose=lambda: compose)])
