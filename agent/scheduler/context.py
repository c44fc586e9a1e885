"""What control loops get: the seam between the process and the controllers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from config.scheduler.schema import SchedulerConfiguration
from kube.events import EventRecorder
from process.clusters import Cluster
from process.garden_api.api import GardenApi


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What control loops are made from."""

    config: SchedulerConfiguration
    garden: Cluster
    api: GardenApi
    """How a garden binds Shoots."""
    recorder: EventRecorder
    clock: Callable[[], datetime] = utc_now
