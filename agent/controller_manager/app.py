"""Composition of the controller manager; parts common to all programs are in `process.composition`."""

from collections.abc import Sequence

from agent.controller_manager import bootstrap
from agent.controller_manager.context import Context
from agent.controller_manager.controllers import CONTROLLERS
from agent.controller_manager.metrics import GardenCollector
from config.controller_manager.schema import ControllerManagerConfiguration
from gardenapi.api import recognized
from kube.runtime.loop import ControlLoop
from process.composition import Composition, Parts
from process.controllers import Controllers


def compose(base: Composition[ControllerManagerConfiguration]) -> Parts:
    config, garden = base.config, base.clusters["garden"]
    declared = CONTROLLERS.load(config)

    async def control_loops() -> Sequence[ControlLoop]:
        api = await recognized(garden.client)
        await bootstrap.prepare(garden.client, api, now=garden.clock())
        context = Context(
            config=config,
            garden=garden,
            api=api,
            recorder=base.clusters.recorder("garden"),
            clock=garden.clock,
            deletion_clock=garden.deletion_clock,
        )
        return [declare(context) for declare in declared]

    return Parts(
        metrics=[GardenCollector(garden.caches.stores)],
        work=[Controllers(base.clusters, config=config, kinds_of=("garden",), compose=control_loops)],
    )
