"""A Seed with a cluster of its own, as far as a gardenlet finds them: registered, and with what others do for it.

place = SeedPlace(garden, cluster)
with place.resource_manager():
async with place.gardenlet(declare) as loop:
...
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from agent.gardenlet.common.component_objects import MUTATED
from agent.gardenlet.context import Context
from config.gardenlet.controllers import Controllers
from config.gardenlet.schema import COMPONENTS
from devcluster.audit import Call
from devcluster.cluster import Cluster
from gardener.api.garden import CONTROLLER_INSTALLATIONS, SEEDS
from gardener.garden.seeds import namespace_of
from kit.eventually import eventually
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import Declare, all_but, gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.processes.agent import AgentProcess, AgentWithOtherClock, sole_configuration
from kit.world import connected
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, mapping, metadata, text
from kube.paths import at, mapping_at
from kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS

GARDEN = "garden"
_GOOD = {"Valid": "True", "Installed": "True", "Healthy": "True", "Progressing": "False"}


def describe(*, garden: Cluster, seed: Cluster, networks: Object) -> None:
    """As a process of a gardenlet wants it: which garden it is, and that the seed has these networks."""
    info = {f"{name}Network": networks[f"{name}s"] for name in ("node", "pod", "service")}
    described = ((seed, "shoot-info", info), (garden, "cluster-identity", {"cluster-identity": "garden"}))
    for cluster, name, data in described:
        with suppress(AlreadyExists):
            cluster.api.create(CONFIG_MAPS.path(namespace="kube-system"), {"metadata": {"name": name}, "data": data})


SENT_AGAIN = {("update", each.plural) for each in MUTATED}
"""Writes by which webhooks see an object in each operation, though nothing changes."""


def changing(calls: Iterable[Call]) -> list[tuple[str, str]]:
    """Verb and resource of writes, without those that only let webhooks see an object in each operation.

    `test_object_sets` shows that these store nothing.
    """
    found = [(each.verb, each.resource) for each in calls]
    return [each for each in found if each not in SENT_AGAIN and each[0] not in ("get", "list", "watch")]


class SeedPlace:
    def __init__(self, garden: Garden, cluster: Cluster, *, has_backup: bool = True) -> None:
        self.place = ShootPlace(garden)
        self.garden = garden
        self.cluster = cluster
        self.name = self.place.seed(has_backup=has_backup)
        with suppress(AlreadyExists):
            cluster.api.create(NAMESPACES.path(), {"metadata": {"name": GARDEN}})
        with suppress(AlreadyExists):
            garden.create(NAMESPACES, namespace_of(self.name))
        self.secret("internal-domain", "internal-domain")
        self.secret("monitoring", "global-monitoring")
        with suppress(AlreadyExists):
            garden.create(SECRETS, "backup", namespace=GARDEN, stringData={"key": "value"})
        self.install()

    def secret(self, name: str, role: str) -> Object:
        """Of the Seed's namespace in the garden."""
        labels = {"gardener.cloud/role": role}
        return self.garden.create(
            SECRETS, name, namespace=namespace_of(self.name), metadata={"labels": labels}, stringData={"auth": "a:b"}
        )

    def install(self) -> None:
        """All extensions that the Seed needs, healthy at once."""
        spec = {"registrationRef": {"name": self.name}, "seedRef": {"name": self.name}}
        self.place.create(CONTROLLER_INSTALLATIONS, self.name, spec=spec)
        self.report_extensions()

    def report_extensions(self, **statuses: str) -> None:
        now = "2024-01-01T00:00:00Z"
        times = {"lastTransitionTime": now, "lastUpdateTime": now}
        conditions = [
            {"type": each, "status": status, "reason": "Test", "message": "test", **times}
            for each, status in {**_GOOD, **statuses}.items()
        ]
        self.place.patch(CONTROLLER_INSTALLATIONS, self.name, {"status": {"conditions": conditions}}, status=True)

    @property
    def seed(self) -> Object:
        return self.place.get(SEEDS, self.name)

    @property
    def operation(self) -> Object:
        return mapping_at(self.seed, "status", "lastOperation")

    def operate(self, operation: str) -> int:
        """Requests it by the annotation; the generation from then on."""
        annotations = {"gardener.cloud/operation": operation}
        return int(
            metadata(self.place.patch(SEEDS, self.name, {"metadata": {"annotations": annotations}}))["generation"]
        )

    def finished(self, state: str = "Succeeded", *, generation: int = 0, since: Object | None = None) -> Object:
        """The last operation, once it has this state.

        Args: generation: that it is about, at least. since: the operation before it.
        """

        def found() -> Object | None:
            status = mapping(self.seed.get("status"))
            operation = mapping(status.get("lastOperation"))
            if status.get("observedGeneration", 0) < generation or operation == since:
                return None
            return operation if operation.get("state") == state else None

        return eventually(found, f"the operation to be {state}", state=lambda: self.operation)

    def remove(self) -> None:
        """Of the garden; what its cluster has stays."""
        self.place.remove()

    def events(self) -> list[str]:
        """Messages of what was reported about the Seed."""
        listed = self.garden.cluster.api.get("/api/v1/events")["items"]
        return [text(each.get("message")) for each in listed if at(each, "involvedObject", "name") == self.name]

    def find(self, path: str) -> Object | None:
        """Of the seed cluster."""
        try:
            found: Object = self.cluster.api.get(path)
        except NotFound:
            return None
        return found

    @contextmanager
    def resource_manager(self) -> Iterator[AgentProcess]:
        """As a process of this computer."""
        config = sole_configuration(
            leaderElection={"leaderElect": True, "resourceNamespace": GARDEN, "leaseDuration": "60s"},
            controllers={"resourceClass": "seed"},
        )
        with AgentProcess(config, kubeconfig=self.cluster.kubeconfig).start() as process:
            yield process

    @contextmanager
    def process(
        self, *, kubeconfig: Path | None = None, clock_ahead: float | None = None, **sections: Any
    ) -> Iterator[AgentProcess]:
        """The gardenlet as a process.

        Args:
            kubeconfig: of the seed, if not the administrator's.
            clock_ahead: seconds by which its own clock is.
            sections: of its configuration file.
        """
        seed = self.seed
        describe(garden=self.garden.cluster, seed=self.cluster, networks=seed["spec"]["networks"])
        config = {
            "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
            "kind": "GardenletConfiguration",
            "gardenClientConnection": {"kubeconfig": str(self.garden.gardenlet_kubeconfig(self.name))},
            # What extensions report is simulated here.
            "controllers": {"controllerInstallationCare": {"enabled": False}},
            "leaderElection": {"leaderElect": False},
            "omit": {"seed": list(COMPONENTS)},
            "logFormat": "json",
            "seedConfig": {"metadata": {"name": self.name}, "spec": seed["spec"]},
            **sections,
        }
        program = AgentProcess if clock_ahead is None else AgentWithOtherClock
        environment = {} if clock_ahead is None else {"CLOCK_AHEAD_SECONDS": str(clock_ahead)}
        with program(config, kubeconfig=kubeconfig or self.cluster.kubeconfig, environment=environment) as process:
            yield process

    @asynccontextmanager
    async def context(self, *, controllers: Controllers | None = None, **fields: Any) -> AsyncIterator[Context]:
        """In the garden, with the rights of a gardenlet. Args: fields: of the configuration."""
        async with (
            connected(self.garden.gardenlet_kubeconfig(self.name), f"gardenlet/garden-of-{self.name}") as garden,
            connected(self.cluster, f"gardenlet/seed-of-{self.name}") as seed,
        ):
            options = {"omit": all_but(), **fields}
            config = gardenlet_config(self.name, controllers=controllers, **options)
            yield await gardenlet_context(garden=garden, seed=seed, config=config)

    @asynccontextmanager
    async def gardenlet(self, *declared: Declare, **options: Any) -> AsyncIterator[Context]:
        async with self.context(**options) as context, gardenlet_at_work(context, *declared):
            yield context
