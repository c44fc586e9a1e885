"""Input of control loops: the seam between the process and the controllers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from agent.gardenlet.common.health import HealthState
from agent.gardenlet.common.image_overwrites import Overwrites
from agent.gardenlet.common.managed_resource_writes import ManagedResourceWrites
from agent.gardenlet.common.metrics import Collectors
from agent.gardenlet.common.shoot_clusters import ShootClusters
from agent.gardenlet.flow.previews import Previews
from agent.gardenlet.flow.record import FlowRecords
from config.gardenlet.schema import GardenletConfiguration
from gardenapi.api import GardenApi
from gardener.garden.seeds import summed_up
from kube.clock import utc_now
from kube.conditions import conditions_of
from kube.objects import Object
from kube.runtime.cache import Store
from kube.runtime.events import EventRecorder
from kube.runtime.status import Complete, Is, StatusWriter, status_of
from process.clusters import Cluster


class StatusWriters:
    """Status writers, one per store for all controllers, so that none overtakes another."""

    def __init__(self) -> None:
        self._made: dict[Store[Any], StatusWriter] = {}

    def of(
        self, cluster: Cluster, store: Store[Any], *, still: Is = lambda _: True, complete: Complete = status_of
    ) -> StatusWriter:
        """Return the writer of a store; `still` and `complete` are those of `StatusWriter`."""
        return self._made.setdefault(store, StatusWriter(cluster.client, store, still=still, complete=complete))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Input of control loops.

    Attributes:
        seed_name: of the own Seed.
        api: properties of the garden's API.
        gardener: id, name and version of this gardenlet, for `status.gardener`.
        garden_identity: of the garden cluster.
        certificate_expires: expiry of the client certificate for the garden; None if there is none.
        flows: records of the flows of this process.
        previews: registry of the controllers' previews.
        shoot_clusters: clusters of the Shoots of this seed; a controller that uses them closes them.
        writes: latest writes of ManagedResources by any controller of this process.
        overwrites: image overwrites to pass to deployed gardenlets.
    """

    config: GardenletConfiguration
    seed_name: str
    seed: Cluster
    garden: Cluster
    api: GardenApi
    seed_recorder: EventRecorder
    garden_recorder: EventRecorder
    gardener: Object
    garden_identity: str
    health: HealthState
    shoot_clusters: ShootClusters
    writes: ManagedResourceWrites
    statuses: StatusWriters = field(default_factory=StatusWriters)
    metrics: Collectors = field(default_factory=Collectors)
    flows: FlowRecords = field(default_factory=FlowRecords)
    previews: Previews = field(default_factory=Previews)
    overwrites: Overwrites = field(default_factory=Overwrites)
    certificate_expires: Callable[[], datetime | None] = lambda: None
    clock: Callable[[], datetime] = utc_now
    deletion_clock: Callable[[], datetime] = utc_now
    """Clock for deletions in the garden; see `Cluster.deletion_clock`."""

    def seed_statuses(self, seeds: Store[Object]) -> StatusWriter:
        """Writer that derives the phase of a Seed from its conditions in the same write."""
        return self.statuses.of(self.garden, seeds, complete=partial(_with_phase, has_phase=self.api.has_own_fields))


def _with_phase(seed: Object, *, has_phase: bool) -> Object:
    status = status_of(seed)
    return summed_up(status, has_phase=has_phase) if conditions_of(seed) else status
