"""Dependencies of control loops: the seam between the process and the controllers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from config.controller_manager.schema import ControllerManagerConfiguration
from gardenapi.api import GardenApi
from kube.clock import utc_now
from kube.runtime.events import EventRecorder
from process.clusters import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Dependencies of control loops."""

    config: ControllerManagerConfiguration
    garden: Cluster
    api: GardenApi
    """Differences of a garden with the original's API server."""
    recorder: EventRecorder
    clock: Callable[[], datetime] = utc_now
    deletion_clock: Callable[[], datetime] = utc_now
    """See `Cluster.deletion_clock`."""

    @property
    def dry_run(self) -> bool:
        return self.config.controllers.dry_run
