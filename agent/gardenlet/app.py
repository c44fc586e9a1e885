"""What the gardenlet consists of, beside what all programs do; see `process.composition`.

The seed is connected at the start. The leader first gets a connection to the garden (`bootstrap`), then registers its
Seed, and only then starts the control loops. While it waits for credentials, the process is alive, and not ready.
"""

from collections.abc import Sequence
from pathlib import Path

import structlog

from agent.gardenlet.context import Context
from agent.gardenlet.controllers import CONTROLLERS
from agent.gardenlet.health import HealthState
from agent.gardenlet.identity import gardener
from agent.table import Declare
from config.gardenlet.schema import GardenletConfiguration
from gardenapi.api import recognized
from kube.objects import mapping, text
from kube.resources import CONFIG_MAPS
from kube.runtime.connection import load_kubeconfig
from kube.runtime.loop import ControlLoop
from process.clusters import Endpoint
from process.composition import Composition, Parts
from process.controllers import Controllers
from process.runner import StartError

IDENTITY = "cluster-identity"
"""Name of the ConfigMap in `kube-system` that says which cluster one is, and its only key."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def compose(base: Composition[GardenletConfiguration]) -> Parts:
    health = HealthState(base.config.controllers.seed.patience)
    return Parts(alive=[health.check], work=[Gardenlet(base, health, CONTROLLERS.load(base.config))])


class Gardenlet:
    """What only a leader runs; a component in the sense of `process.runner`."""

    name = "gardenlet"

    def __init__(
        self, base: Composition[GardenletConfiguration], health: HealthState, declared: Sequence[Declare[Context]]
    ) -> None:
        self._base, self._config, self._health, self._declared = base, base.config, health, declared
        self._gardener = gardener(base.version)
        self._controllers = Controllers(
            base.clusters, config=base.config, kinds_of=("seed", "garden"), compose=self._control_loops
        )

    async def start(self) -> None:
        settings = self._config.garden_client_connection
        connection = load_kubeconfig(Path(settings.kubeconfig))
        self._base.clusters.open(Endpoint(("garden",), connection, settings))
        await self._controllers.start()

    async def wait(self) -> None:
        await self._controllers.wait()

    async def stop(self) -> None:
        await self._controllers.stop()

    async def _control_loops(self) -> Sequence[ControlLoop]:
        clusters = self._base.clusters
        garden = clusters["garden"]
        context = Context(
            config=self._config,
            seed_name=self._config.seed_name,
            seed=clusters["seed"],
            garden=garden,
            clusters=clusters,
            api=await recognized(garden.client),
            seed_recorder=clusters.recorder("seed"),
            garden_recorder=clusters.recorder("garden"),
            gardener=self._gardener,
            garden_identity=await self._garden_identity(),
            health=self._health,
            clock=garden.clock,
        )
        return [declare(context) for declare in self._declared]

    async def _garden_identity(self) -> str:
        """Raises StartError: it can't be known."""
        found = await self._base.clusters["garden"].client.find(CONFIG_MAPS, IDENTITY, namespace="kube-system")
        if identity := text(mapping((found or {}).get("data")).get(IDENTITY)):
            return identity
        raise StartError(
            f"the garden has no ConfigMap kube-system/{IDENTITY} with the key {IDENTITY}: "
            "start its controller manager first, which makes it"
        )
