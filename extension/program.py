"""The program of an extension, from its actuators: `run("gardener-extension-greeter", [Greeter])`.

Every replica fills its caches and serves probes and metrics; the leader runs the control loops and the heartbeat.
"""

from collections.abc import Callable, Sequence
from typing import Never

from extension import heartbeat
from extension.actuators import Actuator
from extension.configuration import SEED, ExtensionConfiguration, component
from extension.controller import checks_health, declare, declare_health
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop
from process import program
from process.composition import Composition, Parts
from process.controllers import Controllers
from process.lifetime import begin


def run(name: str, actuators: Sequence[Callable[[Client], Actuator]], *, version: str = "v0.0.0") -> Never:
    """Run an extension until it is stopped.

    Args:
        name: of the extension: holder of its heartbeat, also in logs, Events and user agents.
        actuators: their classes, or functions that create them from a client of the seed.
        version: version of the extension.
    """
    begin()

    def compose(base: Composition[ExtensionConfiguration]) -> Parts:
        return _parts(name, actuators, base)

    started = program.Program(
        name=name,
        summary="Runs an extension of Gardener in a seed.",
        component=component(name),
        compose=lambda: compose,
    )
    program.run((started,), version=version)


def _parts(
    name: str, actuators: Sequence[Callable[[Client], Actuator]], base: Composition[ExtensionConfiguration]
) -> Parts:
    config, seed = base.config, base.clusters[SEED]
    settings, namespace = config.controllers, config.leader_election.resource_namespace

    async def control_loops() -> Sequence[ControlLoop]:
        workers, found = settings.concurrent_syncs, [each(seed.client) for each in actuators]
        return [
            *(declare(seed, each, workers=workers) for each in found),
            *(
                declare_health(seed, each, workers=workers, seconds=settings.health_check_period)
                for each in found
                if checks_health(each)
            ),
            heartbeat.declare(seed, namespace=namespace, holder=name, seconds=round(settings.heartbeat_period)),
        ]

    return Parts(work=[Controllers(base.clusters, config=config, kinds_of=(SEED,), compose=control_loops)])
