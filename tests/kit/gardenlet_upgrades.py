"""A Gardenlet in a garden, whose gardenlet runs in a cluster of its own; a registry has the chart."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from agent.gardenlet.common.charts.helm import Helm
from agent.gardenlet.common.charts.registry import Registry
from agent.gardenlet.managed_seeds.installation.own_chart import archive
from agent.gardenlet.managed_seeds.self_upgrade import creation
from agent.gardenlet.managed_seeds.self_upgrade.controller import declare_with
from devcluster.cluster import Cluster
from gardener.api.garden import GARDENLETS, SEEDS
from gardener.garden.seeds import bootstrap_token_id
from kit.chart_registry import FakeRegistry
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.installed_gardenlets import GARDEN, InstalledGardenlet
from kit.world import connected
from kube.errors import NotFound
from kube.objects import Key, Object, condition, metadata
from kube.paths import at
from kube.resources import DEPLOYMENTS, SECRETS
from kube.runtime.loop import ControlLoop
from localprocesses.helm_program import find_or_build

DEPLOYED = ("True", "Reconciled")


class Upgraded(InstalledGardenlet):
    """Attributes: name: of the Gardenlet and its Seed."""

    def __init__(self, garden: Garden, cluster: Cluster, registry: FakeRegistry) -> None:
        super().__init__(cluster)
        self.garden, self.registry = garden, registry
        self.place = ShootPlace(garden, is_garden=True)
        self.name = self.place.seed()
        self.registry.tag("v1.0.0", archive())

    def create(self, *, version: str = "v1.0.0", config: Object | None = None, **deployment: Any) -> None:
        self.place.create(GARDENLETS, self.name, spec=self.spec(version=version, config=config, **deployment))

    def gardenlet_object(self) -> Object:
        """A Gardenlet to be created."""
        meta = {"name": self.name, "namespace": GARDEN}
        return {**GARDENLETS.type_meta, "metadata": meta, "spec": self.spec()}

    def spec(self, *, version: str = "v1.0.0", config: Object | None = None, **deployment: Any) -> Object:
        seed = self.place.get(SEEDS, self.name)["spec"]
        whole = {
            "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
            "kind": "GardenletConfiguration",
            "seedConfig": {"spec": seed},
            **(config or {}),
        }
        return {"config": whole, "deployment": {"helm": self.chart(version), **deployment}}

    def chart(self, version: str) -> Object:
        return {"ociRepository": {"ref": str(self.registry.reference(version))}}

    def renew(self) -> None:
        operation = {"metadata": {"annotations": {"gardener.cloud/operation": "renew-kubeconfig"}}}
        self.place.patch(GARDENLETS, self.name, operation)

    def change(self, spec: Object) -> None:
        self.place.patch(GARDENLETS, self.name, {"spec": spec})

    @property
    def gardenlet(self) -> Object:
        return self.place.get(GARDENLETS, self.name)

    def reported(self) -> tuple[str, str, str]:
        found = condition(self.gardenlet, "GardenletReconciled") or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    async def until_said(self, status: str, reason: str, message: str = "") -> None:
        def is_said() -> bool:
            found = self.reported()
            observed = at(self.gardenlet, "status", "observedGeneration")
            return found[:2] == (status, reason) and message in found[2] and observed == self._generation

        await soon(is_said, f"the condition to be {status}, {reason}", state=self.reported)

    @property
    def _generation(self) -> int:
        return int(metadata(self.gardenlet)["generation"])

    @property
    def deployment(self) -> Any:
        return self.find(DEPLOYMENTS) or {}

    def token(self) -> Object | None:
        name = f"bootstrap-token-{bootstrap_token_id(Key(GARDEN, self.name))}"
        with suppress(NotFound):
            return self.garden.get(SECRETS, name, namespace="kube-system")
        return None

    def store_kubeconfig(self) -> None:
        secret = {"metadata": {"name": "gardenlet-kubeconfig"}, "stringData": {"kubeconfig": "of the gardenlet"}}
        self.cluster.api.create(SECRETS.path(namespace=GARDEN), secret)

    def remove(self) -> None:
        self.uninstall()
        if (token := self.token()) is not None:
            self.garden.delete(SECRETS, metadata(token)["name"], namespace="kube-system")
        with suppress(NotFound):
            self.cluster.api.delete(SECRETS.path(namespace=GARDEN, name="gardenlet-kubeconfig"))
        self.place.remove()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Sequence[ControlLoop]]:
        agent = f"gardenlet-{self.name}"
        async with (
            connected(self.garden.gardenlet_kubeconfig(self.name), agent) as own,
            connected(self.cluster, agent) as seed,
        ):
            context = await gardenlet_context(garden=own, seed=seed, config=gardenlet_config(self.name))
            program = find_or_build()
            declare = partial(declare_with, helm=Helm(program=program), registry=Registry(program=program))
            async with gardenlet_at_work(context, declare, creation.declare) as loops:
                yield loops
