"""The `controllers` section of the schema."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from config.shared import ConditionThreshold, LabelSelector, workers
from kube.validation import FieldError, duplicate, forbidden, invalid, required
from process.configuration.blocks import CacheSyncTimeout, Enabled
from process.configuration.checks import at_least, http_url, label_selector, longer_than_zero, one_of, required_value
from process.configuration.fields import Check, Duration, setting

_RESOURCE_QUOTA = ("v1", "ResourceQuota")
DAY = 24 * 3600.0
_LONGEST_CHECK = 180.0
_COUNTED = "shoots"
"""Resource of Seeds whose usage is known without measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """A controller without its own settings."""

    concurrent_syncs: Annotated[int, workers()] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Bastion:
    concurrent_syncs: Annotated[int, workers()] = 5
    max_lifetime: Annotated[
        Duration,
        setting("Maximum age of Bastions, regardless of their heartbeat.", longer_than_zero),
    ] = DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    concurrent_syncs: Annotated[int, workers()] = 5
    ttl_non_shoot_events: Annotated[
        Duration, setting("Age after which Events that are not about Shoots are deleted.", longer_than_zero)
    ] = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedSeedSet:
    concurrent_syncs: Annotated[int, workers()] = 5
    sync_period: Annotated[
        Duration,
        setting("Time between two checks of a ManagedSeedSet, and time limit of a check.", longer_than_zero),
    ] = 1800.0
    max_shoot_retries: Annotated[
        int, setting("Number of retries of a failed operation of a replica's Shoot.", at_least(0))
    ] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    address: Annotated[
        str,
        setting("URL of the server, such as `https://prometheus.example.com`, with an optional path.", http_url),
    ] = ""
    query: Annotated[
        str,
        setting(
            "PromQL query that returns one sample per Seed, with the name of the Seed in the label `seed`.",
            required_value(),
        ),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResource:
    name: Annotated[str, setting("Name of the resource in the capacity of Seeds.", required_value())] = ""
    prometheus: Annotated[Prometheus, setting("Source of the usage.")] = Prometheus()

    def errors(self, path: str) -> Iterator[FieldError]:
        if self.name == _COUNTED:
            yield forbidden(f"{path}.name", "shoots are counted")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRoles:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, workers()] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedAutoscaler:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, workers()] = 2
    sync_period: Annotated[
        Duration,
        setting(
            "Maximum time until a failed check is repeated, and time between two usage queries.",
            longer_than_zero,
        ),
    ] = 60.0
    candidate_determination_strategy: Annotated[
        str,
        setting(
            "Strategy of the scheduler, to determine the Shoots that a new Seed would get.",
            one_of("SameRegion", "MinimalDistance"),
            zero_is_unset=True,
        ),
    ] = "SameRegion"
    resources: Annotated[
        tuple[SeedResource, ...],
        setting("Usage of resources other than `shoots`; see [SeedAutoscaler](seed-autoscaler.md#other-resources)."),
    ] = ()

    def errors(self, path: str) -> Iterator[FieldError]:
        seen: set[str] = set()
        for index, resource in enumerate(self.resources):
            if resource.name in seen:
                yield duplicate(f"{path}.resources[{index}].name", resource.name)
            seen.add(resource.name)


def _quota_errors(path: str, value: Mapping[str, Any]) -> Iterator[FieldError]:
    if not value:
        yield required(path, "must provide a quota config")
        return
    api_version, kind = value.get("apiVersion", ""), value.get("kind", "")
    if (api_version, kind) != _RESOURCE_QUOTA:
        yield invalid(path, f"{api_version}, Kind={kind}", "is not a supported ResourceQuota configuration")
    spec = value.get("spec")
    if not isinstance(spec, Mapping) or not isinstance(spec.get("hard") or {}, Mapping):
        yield invalid(f"{path}.spec", spec, "must be the spec of a ResourceQuota")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfiguration:
    config: Annotated[
        dict[str, Any],
        setting("`v1` ResourceQuota with labels, annotations and `spec.hard`.", Check("", _quota_errors)),
    ] = field(default_factory=dict)
    project_selector: Annotated[
        LabelSelector, setting("Selector for the Projects that get the quota; empty: all.", label_selector)
    ] = field(default_factory=LabelSelector)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    concurrent_syncs: Annotated[int, workers()] = 5
    minimum_lifetime_days: Annotated[
        int,
        setting("Minimum days since the creation and last activity of a stale Project.", at_least(0)),
    ] = 30
    stale_grace_period_days: Annotated[
        int, setting("Number of days that a Project is stale before its deletion is scheduled.", at_least(0))
    ] = 14
    stale_expiration_time_days: Annotated[
        int, setting("Number of days after which a stale Project is deleted.", at_least(0))
    ] = 90
    stale_sync_period: Annotated[Duration, setting("Time between two checks for staleness.", longer_than_zero)] = (
        DAY / 2
    )
    quotas: Annotated[
        tuple[QuotaConfiguration, ...],
        setting("ResourceQuotas for namespaces of Projects; the first one with a matching selector applies."),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    concurrent_syncs: Annotated[int, workers()] = 5
    sync_period: Annotated[
        Duration,
        setting("Maximum time until a failed check is repeated; Leases are watched.", longer_than_zero),
    ] = 10.0
    monitor_period: Annotated[
        Duration, setting("Time since the last heartbeat after which a Seed counts as lost.", longer_than_zero)
    ] = 40.0
    shoot_monitor_period: Annotated[
        Duration | None,
        setting(
            "Time between the loss of a Seed and its report in Shoots; unset: five times `monitorPeriod`.",
            longer_than_zero,
        ),
    ] = None

    @property
    def patience_with_shoots(self) -> float:
        """Seconds from the loss of a Seed until its Shoots report it."""
        return 5 * self.monitor_period if self.shoot_monitor_period is None else self.shoot_monitor_period


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedCheck:
    concurrent_syncs: Annotated[int, workers()] = 5
    sync_period: Annotated[
        Duration, setting("Time limit of a check, and maximum time until a failed check is repeated.", longer_than_zero)
    ] = 30.0
    condition_thresholds: Annotated[
        tuple[ConditionThreshold, ...],
        setting("Time that a failing condition counts as progressing, by type of condition."),
    ] = ()

    @property
    def time_limit(self) -> float:
        """Maximum seconds of a check."""
        return min(self.sync_period, _LONGEST_CHECK)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootHibernation:
    concurrent_syncs: Annotated[int, workers()] = 5
    trigger_deadline_duration: Annotated[
        Duration, setting("Maximum delay of a scheduled hibernation or wake-up.", longer_than_zero)
    ] = 7200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootMaintenance:
    concurrent_syncs: Annotated[int, workers()] = 5
    enable_shoot_control_plane_restarter: Annotated[
        bool, setting("Restart the pods of control planes during each maintenance.")
    ] = True
    enable_shoot_core_addon_restarter: Annotated[bool, setting("Restart some core addons during each maintenance.")] = (
        False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootQuota:
    concurrent_syncs: Annotated[int, workers()] = 5
    sync_period: Annotated[Duration, setting("Time between two checks of a Shoot's expiration.", longer_than_zero)] = (
        3600.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootRetry:
    concurrent_syncs: Annotated[int, workers()] = 5
    retry_period: Annotated[
        Duration,
        setting("Time after which an operation that failed because of a rate limit is retried.", longer_than_zero),
    ] = 600.0
    retry_jitter_period: Annotated[
        Duration, setting("Maximum random time added to `retryPeriod`.", longer_than_zero)
    ] = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Controllers:
    cache_sync_timeout: CacheSyncTimeout = 120.0
    dry_run: Annotated[
        bool,
        setting("Only log deletions of stale Projects and expired Shoots, and changes by maintenance."),
    ] = False
    bastion: Annotated[Bastion, setting("Deletes expired Bastions.")] = Bastion()
    certificate_signing_request: Annotated[Workers, setting("Approves the certificates of gardenlets.")] = Workers()
    cloud_profile: Annotated[Workers, setting("Protects CloudProfiles in use from deletion.")] = Workers()
    controller_deployment: Annotated[Workers, setting("Protects ControllerDeployments in use from deletion.")] = (
        Workers()
    )
    controller_registration: Annotated[Workers, setting("Maintains the ControllerInstallations of Seeds.")] = Workers()
    credentials_binding: Annotated[Workers, setting("Protects and labels the credentials of bindings.")] = Workers()
    event: Annotated[Event | None, setting("Deletes expired Events; unset: disabled.")] = None
    exposure_class: Annotated[Workers, setting("Protects ExposureClasses in use from deletion.")] = Workers()
    managed_seed_set: Annotated[ManagedSeedSet, setting("Maintains the replicas of ManagedSeedSets.")] = (
        ManagedSeedSet()
    )
    namespaced_cloud_profile: Annotated[Workers, setting("Renders NamespacedCloudProfiles.")] = Workers()
    project: Annotated[Project, setting("Maintains namespaces, rights and staleness of Projects.")] = Project()
    quota: Annotated[Workers, setting("Protects Quotas in use from deletion.")] = Workers()
    secret_binding: Annotated[Workers, setting("Protects and labels the Secrets of bindings.")] = Workers()
    seed: Annotated[Seed, setting("Detects Seeds without heartbeats.")] = Seed()
    seed_autoscaler: Annotated[SeedAutoscaler, setting("Scales ManagedSeedSets according to SeedAutoscalers.")] = (
        SeedAutoscaler()
    )
    seed_backup_buckets_check: Annotated[SeedCheck, setting("Maintains the condition BackupBucketsReady.")] = (
        SeedCheck()
    )
    seed_extensions_check: Annotated[SeedCheck, setting("Maintains the condition ExtensionsReady.")] = SeedCheck()
    seed_roles: Annotated[
        SeedRoles, setting("Grants gardenlets access to credentials by Roles, for gardens without an authorizer.")
    ] = SeedRoles()
    shoot_conditions: Annotated[Workers, setting("Copies conditions of Seeds that are Shoots to these Shoots.")] = (
        Workers()
    )
    shoot_hibernation: Annotated[ShootHibernation, setting("Hibernates and wakes up Shoots by schedule.")] = (
        ShootHibernation()
    )
    shoot_maintenance: Annotated[ShootMaintenance, setting("Maintains Shoots in their time windows.")] = (
        ShootMaintenance()
    )
    shoot_quota: Annotated[ShootQuota, setting("Deletes expired Shoots.")] = ShootQuota()
    shoot_reference: Annotated[Workers, setting("Protects objects that Shoots reference.")] = Workers()
    shoot_retry: Annotated[ShootRetry, setting("Retries operations that failed because of a rate limit.")] = (
        ShootRetry()
    )
    shoot_status_label: Annotated[Workers, setting("Maintains the status label of Shoots.")] = Workers()
