"""Dependencies of control loops: the seam between the process and the controllers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from config.scheduler.schema import SchedulerConfiguration
from gardenapi.api import GardenApi
from kube.clock import utc_now
from kube.runtime.events import EventRecorder
from process.clusters import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Dependencies of control loops."""

    config: SchedulerConfiguration
    garden: Cluster
    api: GardenApi
    """API to bind Shoots in this garden."""
    recorder: EventRecorder
    clock: Callable[[], datetime] = utc_now
