"""Composition of the scheduler; parts common to all programs are in `process.composition`."""

from collections.abc import Sequence

from agent.scheduler.context import Context
from agent.scheduler.controllers import CONTROLLERS
from config.scheduler.schema import SchedulerConfiguration
from gardenapi.api import recognized
from kube.runtime.loop import ControlLoop
from process.composition import Composition, Parts
from process.controllers import Controllers


def compose(base: Composition[SchedulerConfiguration]) -> Parts:
    config, garden = base.config, base.clusters["garden"]
    declared = CONTROLLERS.load(config)

    async def control_loops() -> Sequence[ControlLoop]:
        api = await recognized(garden.client)
        recorder = base.clusters.recorder("garden")
        context = Context(config=config, garden=garden, api=api, recorder=recorder, clock=garden.clock)
        return [declare(context) for declare in declared]

    return Parts(work=[Controllers(base.clusters, config=config, kinds_of=("garden",), compose=control_loops)])
