"""What the gardenlet consists of, beside what all programs do; see `process.composition`.

The seed is connected at the start. The leader first gets a connection to the garden (`bootstrap`), then registers its
Seed, and only then starts the control loops. While it waits for credentials, the process is alive, and not ready.
"""

import asyncio
from collections.abc import Sequence

import structlog

from agent.gardenlet.bootstrap import seed_configuration, self_upgrade
from agent.gardenlet.bootstrap.access import GardenAccess
from agent.gardenlet.bootstrap.bootstrap_credentials import finish
from agent.gardenlet.bootstrap.left_over_operations import LeftOverOperations
from agent.gardenlet.bootstrap.pace import Pace
from agent.gardenlet.bootstrap.registration import Registration
from agent.gardenlet.bootstrap.rotation import GARDEN, Rotation
from agent.gardenlet.context import Context
from agent.gardenlet.controllers import CONTROLLERS
from agent.gardenlet.health import HealthState
from agent.gardenlet.identity import gardener
from agent.gardenlet.managed_resource_writes import ManagedResourceWrites
from agent.gardenlet.metrics import Collectors
from agent.table import Declare
from config.gardenlet.schema import GardenletConfiguration
from gardenapi.api import recognized
from kube.objects import mapping, text
from kube.resources import CONFIG_MAPS
from kube.runtime.loop import ControlLoop
from process.clusters import Endpoint
from process.composition import Composition, Parts
from process.controllers import Controllers
from process.runner import StartError

IDENTITY = "cluster-identity"
"""Name of the ConfigMap in `kube-system` that says which cluster one is, and its only key."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def compose(base: Composition[GardenletConfiguration]) -> Parts:
    health, metrics = HealthState(base.config.controllers.seed.patience), Collectors()
    gardenlet = Gardenlet(base, health, metrics, CONTROLLERS.load(base.config))
    return Parts(
        alive=[health.check],
        checks=[gardenlet.access.credentials.check()],
        metrics=metrics.all(),
        work=[gardenlet],
    )


class Gardenlet:
    """What only a leader runs; a component in the sense of `process.runner`."""

    name = "gardenlet"

    def __init__(
        self,
        base: Composition[GardenletConfiguration],
        health: HealthState,
        metrics: Collectors,
        declared: Sequence[Declare[Context]],
    ) -> None:
        self._base, self._config, self._health, self._declared = base, base.config, health, declared
        self._metrics = metrics
        self._gardener = gardener(base.version)
        self._pace = Pace()
        self.access = GardenAccess(
            seed=base.clusters["seed"],
            clusters=base.clusters,
            settings=base.config.garden_client_connection,
            seed_name=base.config.seed_name,
            pace=self._pace,
        )
        self._controllers = Controllers(
            base.clusters, config=base.config, kinds_of=("seed", GARDEN), compose=self._control_loops
        )
        self._rotation: Rotation | None = None

    async def start(self) -> None:
        """Waits as long as there are no credentials for the garden, or the garden does not answer.

        Raises: StartError: somebody has to correct something.
        """
        seed, configured = self._base.clusters["seed"].client, self._config.seed
        await seed_configuration.check(seed, configured, pace=self._pace)
        kubeconfig = await self.access.obtain()
        settings = self._config.garden_client_connection
        garden = self._base.clusters.open(Endpoint((GARDEN,), kubeconfig.connection, settings)).client
        await finish(self.access, garden)
        registered = await Registration(garden=garden, seed=seed, configured=configured, pace=self._pace).register()
        await self_upgrade.hand_over(garden=garden, seed=seed, pace=self._pace)
        await LeftOverOperations(garden=garden, seed_name=self._config.seed_name, pace=self._pace).abort()
        self._health.confirm()
        await self._controllers.start()
        self._rotation = Rotation(access=self.access, kubeconfig=kubeconfig, seed=registered)
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
            clusters=clusters,
            api=await recognized(garden.client),
            seed_recorder=clusters.recorder("seed"),
            garden_recorder=clusters.recorder(GARDEN),
            gardener=self._gardener,
            garden_identity=await self._garden_identity(),
            health=self._health,
            metrics=self._metrics,
            writes=ManagedResourceWrites(clock=clusters["seed"].clock),
            clock=garden.clock,
        )
        return [declare(context) for declare in self._declared]

    async def _garden_identity(self) -> str:
        """Raises StartError: it can't be known."""
        found = await self._base.clusters[GARDEN].client.find(CONFIG_MAPS, IDENTITY, namespace="kube-system")
        if identity := text(mapping((found or {}).get("data")).get(IDENTITY)):
            return identity
        raise StartError(
            f"the garden has no ConfigMap kube-system/{IDENTITY} with the key {IDENTITY}: "
            "start its controller manager first, which makes it"
        )
