"""Parts of the local provider, in addition to those of every program; see `process.composition`."""

from collections.abc import Sequence
from pathlib import Path

from config.local_provider.schema import LocalProviderConfiguration
from extension.controller import declare
from kube.runtime.loop import ControlLoop
from localprovider.extensions.actuators import ACTUATORS
from localprovider.extensions.state import State
from localprovider.runner.controller import Runner
from localprovider.seeds.controller import declare as declare_seeds
from process.composition import Composition, Parts
from process.controllers import Controllers


def compose(base: Composition[LocalProviderConfiguration]) -> Parts:
    config, seed = base.config, base.clusters["seed"]
    directory = Path(config.state_dir).absolute()
    buckets = Path(config.buckets_dir).absolute() if config.buckets_dir else None
    state = State(directory, buckets=buckets)

    runner = Runner(
        seed,
        directory,
        seed_kubeconfig=Path(config.seed_client_connection.kubeconfig),
        buckets=state.buckets,
        recorder=base.clusters.recorder("seed"),
        is_shoot=config.seed_is_shoot,
    )

    async def control_loops() -> Sequence[ControlLoop]:
        workers = config.controllers.concurrent_syncs
        return [
            *(declare(seed, actuator(seed.client, state), workers=workers) for actuator in ACTUATORS),
            *runner.control_loops(),
            # A Shoot on a seed that is a Shoot cannot become a seed: its owner could cause that.
            *([] if config.seed_is_shoot else [declare_seeds(seed, runner.pods(), workers=workers)]),
        ]

    controllers = Controllers(base.clusters, config=config, kinds_of=("seed",), compose=control_loops)
    return Parts(ready=[runner], work=[controllers])
