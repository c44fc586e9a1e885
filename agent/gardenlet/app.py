"""Parts of the gardenlet, in addition to those of all programs; see `process.composition`.

The seed is connected at the start. The leader first gets a connection to the garden (`bootstrap`), then registers its
Seed, and only then starts the control loops. While it waits for credentials, the process is live but not ready.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from agent.gardenlet.bootstrap.access import GardenAccess
from agent.gardenlet.bootstrap.entrance import enter
from agent.gardenlet.bootstrap.rotation import GARDEN, Rotation
from agent.gardenlet.common.health import HealthState
from agent.gardenlet.common.identity import gardener
from agent.gardenlet.common.image_overwrites import Overwrites, overwrites, overwritten
from agent.gardenlet.common.managed_resource_writes import ManagedResourceWrites
from agent.gardenlet.common.metrics import Collectors
from agent.gardenlet.common.shoot_clusters import ShootClusters
from agent.gardenlet.context import Context
from agent.gardenlet.controllers import CONTROLLERS
from agent.gardenlet.flow.page import flow_page
from agent.gardenlet.flow.previews import Previews
from agent.gardenlet.flow.record import FlowRecords
from agent.table import Declare
from components.registry import images_of_workers
from config.gardenlet.schema import GardenletConfiguration
from gardenapi.api import recognized
from kube.objects import Key, mapping, text
from kube.resources import CONFIG_MAPS
from kube.runtime.loop import ControlLoop
from process.composition import Composition, Parts
from process.controllers import Controllers
from process.memory import keep_large_apart
from process.runner import StartError

IDENTITY = "cluster-identity"
"""Name and only key of the ConfigMap in `kube-system` that identifies a cluster."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def compose(base: Composition[GardenletConfiguration]) -> Parts:
    keep_large_apart()
    health, metrics = HealthState(base.config.controllers.seed.patience), Collectors()
    gardenlet = Gardenlet(base, health, metrics, CONTROLLERS.load(base.config), _overwrites())
    return Parts(
        alive=[health.check],
        checks=[gardenlet.access.credentials.check()],
        metrics=metrics.all(),
        pages={"flows": flow_page(gardenlet.flows, gardenlet.previews, host=base.config.server.metrics.bind_address)},
        work=[gardenlet],
    )


def _overwrites() -> Overwrites:
    """Return the image overwrites of the environment.

    Raises:
        StartError: a file can't be read.
    """
    try:
        return overwrites(os.environ)
    except ValueError as error:
        raise StartError(str(error)) from error


def _configured(config: GardenletConfiguration, others: Overwrites) -> GardenletConfiguration:
    """Return the configuration with the overwritten images.

    Raises:
        StartError: the overwrites or the configured images are invalid.
    """
    try:
        images, ignored = overwritten(config.images, others.images, for_workers=images_of_workers)
    except ValueError as error:
        raise StartError(str(error)) from error
    for each in ignored:
        log.info("Ignored an entry of the image overwrite file", entry=each)
    return replace(config, images=images)


class Gardenlet:
    """Work of the leader only; a component in the sense of `process.runner`."""

    name = "gardenlet"

    def __init__(
        self,
        base: Composition[GardenletConfiguration],
        health: HealthState,
        metrics: Collectors,
        declared: Sequence[Declare[Context]],
        others: Overwrites,
    ) -> None:
        self._base, self._health, self._declared, self._overwrites = base, health, declared, others
        self._config = _configured(base.config, others)
        self._metrics, self.flows, self.previews = metrics, FlowRecords(), Previews()
        self._gardener = gardener(base.version)
        self.access = GardenAccess(
            seed=base.clusters["seed"],
            clusters=base.clusters,
            settings=base.config.garden_client_connection,
            seed_name=base.config.seed_name,
        )
        self._controllers = Controllers(
            base.clusters, config=base.config, kinds_of=("seed", GARDEN), compose=self._control_loops
        )
        self._rotation: Rotation | None = None

    async def start(self) -> None:
        """Enter the garden, then start the control loops and the rotation.

        Raises:
            StartError: a human must correct something.
        """
        self._rotation = await enter(self.access, self._config.seed)
        await self._controllers.start()
        self._health.confirm()
        await self._rotation.start()

    async def wait(self) -> None:
        assert self._rotation is not None
        async with asyncio.TaskGroup() as running:
            running.create_task(self._controllers.wait())
            running.create_task(self._rotation.wait())

    async def stop(self) -> None:
        if self._rotation is not None:
            await self._rotation.stop()
        await self._controllers.stop()

    async def _control_loops(self) -> Sequence[ControlLoop]:
        clusters = self._base.clusters
        garden = clusters[GARDEN]
        context = Context(
            config=self._config,
            seed_name=self._config.seed_name,
            seed=clusters["seed"],
            garden=garden,
            api=await self.access.pace.patiently("recognize the garden", lambda: recognized(garden.client)),
            seed_recorder=clusters.recorder("seed"),
            garden_recorder=clusters.recorder(GARDEN),
            gardener=self._gardener,
            garden_identity=await self._garden_identity(),
            health=self._health,
            shoot_clusters=ShootClusters(clusters["seed"].client, clusters, self._config.shoot_client_connection),
            metrics=self._metrics,
            flows=self.flows,
            previews=self.previews,
            writes=ManagedResourceWrites(),
            overwrites=self._overwrites,
            certificate_expires=self._certificate_expires,
            clock=garden.clock,
            deletion_clock=garden.deletion_clock,
        )
        return [declare(context) for declare in self._declared]

    def _certificate_expires(self) -> datetime | None:
        life = self.access.credentials.life
        return None if life is None else life.until

    async def _garden_identity(self) -> str:
        """Return the identity of the garden.

        Raises:
            StartError: it is unknown.
        """
        garden = self._base.clusters[GARDEN].client
        found = await self.access.pace.patiently(
            "read the identity of the garden", lambda: garden.find(CONFIG_MAPS, Key("kube-system", IDENTITY))
        )
        if identity := text(mapping((found or {}).get("data")).get(IDENTITY)):
            return identity
        raise StartError(
            f"the garden has no ConfigMap kube-system/{IDENTITY} with the key {IDENTITY}; start the controller manager "
            "of the garden first, which creates it"
        )
