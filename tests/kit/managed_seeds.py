"""A ManagedSeed in a garden that is its parent's seed, too; its Shoot is another cluster."""

import base64
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from agent.gardenlet.common.charts.helm import Helm
from agent.gardenlet.managed_seeds.main.controller import declare_with
from config.gardenlet.controllers import Controllers, ManagedSeed
from devcluster.cluster import Cluster
from gardener.api.garden import MANAGED_SEEDS, SEEDS, SHOOTS
from gardener.garden.seeds import bootstrap_token_id
from kit.eventually import eventually, soon
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.installed_gardenlets import GARDEN, InstalledGardenlet
from kit.world import connected
from kube.clock import utc_now
from kube.errors import AlreadyExists, NotFound
from kube.objects import Key, Object, condition, metadata
from kube.paths import at
from kube.resources import NAMESPACES, SECRETS
from kube.runtime.loop import ControlLoop
from localprocesses.helm_program import find_or_build
from process.clusters import Clusters

QUICK = Controllers(managed_seed=ManagedSeed(wait_sync_period=0.5))


class ManagedSeedPlay(InstalledGardenlet):
    """In the cluster of the Shoot.

    Attributes: name: of ManagedSeed, its Seed and its Shoot. parent: the Seed whose gardenlet is at work.

    Args: beside: another one with the same parent.
    """

    def __init__(self, garden: Garden, cluster: Cluster, *, beside: "ManagedSeedPlay | None" = None) -> None:
        super().__init__(cluster)
        self.garden = garden
        self.place = ShootPlace(garden, is_garden=True)
        self.parent: str = beside.parent if beside is not None else self.place.seed("-parent")
        self.name = self.place.name
        self.namespace = f"shoot--{GARDEN}--{self.name}"
        dns = {
            "domain": f"{self.name}.example.com",
            "providers": [{"type": self.name, "primary": True, "secretName": self.name}],
        }
        kubernetes = {"version": "1.30.1", "verticalPodAutoscaler": {"enabled": True}}
        self.place.shoot(self.name, seedName=self.parent, dns=dns, kubernetes=kubernetes)
        with contextlib.suppress(AlreadyExists):
            garden.create(NAMESPACES, self.namespace)
        kubeconfig = {"kubeconfig": cluster.kubeconfig.read_text()}
        garden.create(SECRETS, "gardener", namespace=self.namespace, stringData=kubeconfig)
        self.shoot_is("Succeeded")

    def shoot_is(self, state: str) -> None:
        generation = metadata(self.place.get(SHOOTS, self.name))["generation"]
        last = {"type": "Create", "state": state, "progress": 100, "description": "d"}
        last["lastUpdateTime"] = "2026-01-01T00:00:00Z"
        status = {"observedGeneration": generation, "technicalID": self.namespace, "lastOperation": last}
        self.place.patch(SHOOTS, self.name, {"status": status}, status=True)

    @property
    def _backup(self) -> Object:
        return {"provider": self.name, "secretRef": {"name": f"backup-{self.name}", "namespace": GARDEN}}

    def create(self, *, config: Object | None = None, **gardenlet: Any) -> None:
        whole = {
            "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
            "kind": "GardenletConfiguration",
            "seedConfig": {"spec": {"backup": self._backup}},
            **(config or {}),
        }
        spec = {"shoot": {"name": self.name}, "gardenlet": {"config": whole, **gardenlet}}
        self.place.create(MANAGED_SEEDS, self.name, spec=spec)

    def create_with_template(self, **metadata: Any) -> None:
        template = {"metadata": metadata, "spec": {"backup": self._backup}}
        self.place.create(MANAGED_SEEDS, self.name, spec={"shoot": {"name": self.name}, "seedTemplate": template})

    def kick(self) -> None:
        """As a person does who wants it reconciled."""
        operation = {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}
        self.place.patch(MANAGED_SEEDS, self.name, operation)

    def change(self, gardenlet: Object) -> None:
        self.place.patch(MANAGED_SEEDS, self.name, {"spec": {"gardenlet": gardenlet}})

    @property
    def managed_seed(self) -> Object | None:
        return self.place.find(MANAGED_SEEDS, self.name)

    def reported(self, of_type: str = "SeedRegistered") -> tuple[str, str, str]:
        found = condition(self.managed_seed or {}, of_type) or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    async def until_said(self, status: str, reason: str, message: str = "", of_type: str = "SeedRegistered") -> None:
        def is_said() -> bool:
            found = self.reported(of_type)
            assert found[:2] == (status, reason), found
            assert message in found[2], found
            live = self.managed_seed or {}
            return bool(at(live, "status", "observedGeneration") == metadata(live).get("generation"))

        await soon(is_said, f"{of_type} to be {status}, {reason}", passing=(AssertionError,), state=self.reported)

    # --- what there is

    def kubeconfig(self) -> bytes:
        found = self.find(SECRETS, "gardenlet-kubeconfig-bootstrap")
        assert found is not None
        return base64.b64decode(found["data"]["kubeconfig"])

    def token(self) -> Object | None:
        name = f"bootstrap-token-{bootstrap_token_id(Key(GARDEN, self.name))}"
        with contextlib.suppress(NotFound):
            return self.garden.get(SECRETS, name, namespace="kube-system")
        return None

    def backup(self) -> Object | None:
        return self.place.find(SECRETS, f"backup-{self.name}")

    def register(self, **status: Any) -> None:
        """As its gardenlet does: the Seed comes, held by a finalizer."""
        self.place.seed()
        self.place.patch(SEEDS, self.name, {"metadata": {"finalizers": ["gardener"]}})
        if status:
            self.place.patch(SEEDS, self.name, {"status": status}, status=True)

    def clean_up(self) -> None:
        """As its gardenlet does at the end."""
        self.place.patch(SEEDS, self.name, {"metadata": {"finalizers": None}})

    def remove(self) -> None:
        with contextlib.suppress(NotFound):
            self.cluster.api.delete(NAMESPACES.path(name=GARDEN))
        eventually(lambda: self.find(NAMESPACES, GARDEN) is None, "the namespace of the gardenlet to go")
        self.place.remove()
        if (token := self.token()) is not None:
            self.garden.delete(SECRETS, metadata(token)["name"], namespace="kube-system")
        self.garden.delete(NAMESPACES, self.namespace)

    # --- the parent

    @asynccontextmanager
    async def parent_at_work(
        self,
        *,
        controllers: Controllers = QUICK,
        garden: Path | None = None,
        seed: Path | None = None,
        clock: Callable[[], datetime] = utc_now,
        **config: Any,
    ) -> AsyncIterator[Sequence[ControlLoop]]:
        """With the rights of the gardenlet of its Seed. Args: garden, seed: kubeconfigs of other ways there."""
        agent = f"gardenlet/{self.parent}"
        async with (
            connected(garden or self.garden.gardenlet_kubeconfig(self.parent), agent) as own,
            connected(seed or self.garden.cluster, agent) as of_seed,
        ):
            context = await gardenlet_context(
                garden=own,
                seed=of_seed,
                config=gardenlet_config(self.parent, controllers=controllers, **config),
                clock=clock,
                clusters=Clusters(user_agent=agent, component="gardenlet"),
            )
            helm = Helm(program=find_or_build())
            async with gardenlet_at_work(context, partial(declare_with, helm=helm)) as loops:
                yield loops
