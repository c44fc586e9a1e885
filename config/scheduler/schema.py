"""All fields of the scheduler's configuration file."""

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar

from config.shared import workers
from process.configuration.blocks import (
    CacheSyncTimeout,
    ClientConnection,
    ElectingConfiguration,
    HTTPServer,
    LeaderElection,
    Server,
)
from process.configuration.checks import lasts_at_least, one_of
from process.configuration.fields import Duration, setting

SAME_REGION, MINIMAL_DISTANCE = STRATEGIES = ("SameRegion", "MinimalDistance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shoot:
    concurrent_syncs: Annotated[int, workers()] = 5
    candidate_determination_strategy: Annotated[
        str,
        setting("Strategy that selects the candidates among matching Seeds.", one_of(*STRATEGIES), zero_is_unset=True),
    ] = SAME_REGION
    progressing_seed_grace_period: Annotated[
        Duration,
        setting(
            "Time that a Seed stays usable after its gardenlet turns from ready to progressing; 0: none.",
            lasts_at_least(0, "must be non-negative"),
        ),
    ] = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupBucket:
    concurrent_syncs: Annotated[int, workers()] = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedulers:
    cache_sync_timeout: CacheSyncTimeout = 120.0
    backup_bucket: Annotated[BackupBucket, setting("Accepted for compatibility; ignored.")] = BackupBucket()
    shoot: Annotated[Shoot, setting("Chooses Seeds for Shoots.")] = Shoot()


@dataclass(frozen=True, kw_only=True)
class _Connections:
    client_connection: Annotated[ClientConnection, setting("Connection to the garden cluster.")] = field(
        default_factory=partial(ClientConnection, qps=50.0, burst=100)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfiguration(ElectingConfiguration, _Connections):
    leader_election: Annotated[
        LeaderElection, setting("Leader election of the scheduler, by a Lease in the garden cluster.")
    ] = field(
        default_factory=partial(
            LeaderElection, resource_name="gardener-scheduler-leader-election", resource_namespace="garden"
        )
    )
    server: Annotated[Server, setting("Servers of the program.")] = field(
        default_factory=partial(Server, health_probes=HTTPServer(port=10251), metrics=HTTPServer(port=19251))
    )
    feature_gates: Annotated[dict[str, bool], setting("Accepted for compatibility; no feature gates exist.")] = field(
        default_factory=dict
    )
    schedulers: Annotated[Schedulers, setting("Controllers of the program.")] = field(default_factory=Schedulers)
    cache_sync_timeout_path: ClassVar[str] = "schedulers.cacheSyncTimeout"

    @property
    def controllers(self) -> Schedulers:
        """Name of the section in other programs."""
        return self.schedulers
