"""The `controllers` section of the schema.

Every controller can be switched off. Settings of functions that a controller does not have are accepted all the same,
so that one file serves several releases.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from config.shared import ConditionThreshold, LabelSelector
from kube.validation import FieldError, forbidden, invalid
from process.configuration.blocks import CacheSyncTimeout, Enabled
from process.configuration.checks import at_least, each, label_selector, lasts_at_least, one_of
from process.configuration.fields import Check, Duration, Setting, setting

NOT_NEGATIVE = "must be greater than or equal to 0"
PURPOSES = ("evaluation", "testing", "development", "infrastructure", "production")
HOUR = 3600.0


def workers() -> Setting:
    """Number of objects that a controller processes at once; the references explain it above their fields."""
    return setting("", at_least(0, NOT_NEGATIVE), zero_is_unset=True)


def period(effect: str) -> Setting:
    return setting(effect, lasts_at_least(0, NOT_NEGATIVE), zero_is_unset=True)


def _ttl(path: str, value: int) -> Iterator[FieldError]:
    if not 30 <= value <= 600:
        yield invalid(path, value, "must be within [30,600]")


Thresholds = Annotated[
    tuple[ConditionThreshold, ...],
    setting("Time that a condition stays progressing before it turns from true to false, by type of condition."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """A controller without its own settings."""

    enabled: Enabled = True
    concurrent_syncs: Annotated[int, workers()] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupEntry(Workers):
    deletion_grace_period_hours: Annotated[
        int,
        setting("Number of hours that backups of deleted Shoots are kept; negative: 0."),
    ] = 0
    deletion_grace_period_shoot_purposes: Annotated[
        tuple[str, ...],
        setting("Purposes of the Shoots whose backups are kept; empty: all.", each(one_of(*PURPOSES))),
    ] = ()

    def errors(self, path: str) -> Iterator[FieldError]:
        if self.deletion_grace_period_shoot_purposes and self.deletion_grace_period_hours <= 0:
            detail = "must specify grace period hours > 0 when specifying purposes"
            yield forbidden(f"{path}.deletionGracePeriodShootPurposes", detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationCare(Workers):
    sync_period: Annotated[Duration, period("Time between two checks of a ControllerInstallation.")] = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationRequired(Workers):
    concurrent_syncs: Annotated[int, workers()] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gardenlet:
    enabled: Enabled = True
    sync_period: Annotated[Duration, period("Time between two reconciliations of the Gardenlet.")] = HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedSeed(Workers):
    sync_period: Annotated[Duration, period("Time between two reconciliations of a ManagedSeed.")] = HOUR
    wait_sync_period: Annotated[
        Duration, period("Time between two checks of a ManagedSeed whose Shoot is not ready.")
    ] = 15.0
    sync_jitter_period: Annotated[Duration, period("Time over which reconciliations after a start are spread.")] = 300.0
    jitter_updates: Annotated[bool, setting("Also spread reconciliations of changed ManagedSeeds.")] = False
    max_concurrent_rollouts: Annotated[
        int,
        setting("Maximum number of gardenlets that are rolled out at the same time.", at_least(1), zero_is_unset=True),
    ] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy(Workers):
    concurrent_syncs: Annotated[int, workers()] = 5
    additional_namespace_selectors: Annotated[
        tuple[LabelSelector, ...],
        setting("Additional namespaces that get the policies, besides those of Gardener.", each(label_selector)),
    ] = ()
    namespaces_served_elsewhere: Annotated[
        tuple[LabelSelector, ...],
        setting("Namespaces whose policies another program manages.", each(label_selector)),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    enabled: Enabled = True
    sync_period: Annotated[Duration, period("Time between two reconciliations of the Seed.")] = 60.0
    lease_resync_seconds: Annotated[
        int,
        setting(
            "Number of seconds between two renewals of the Seed's Lease.", at_least(0, NOT_NEGATIVE), zero_is_unset=True
        ),
    ] = 2
    lease_resync_miss_threshold: Annotated[
        int,
        setting(
            "Missing renewals after which `/healthz` reports a failure; a failed renewal is reported at once.",
            at_least(0, NOT_NEGATIVE),
            zero_is_unset=True,
        ),
    ] = 10

    @property
    def patience(self) -> float:
        """Seconds without a renewal after which the process counts as unhealthy."""
        return float(self.lease_resync_seconds * self.lease_resync_miss_threshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedCare:
    enabled: Enabled = True
    sync_period: Annotated[Duration, period("Time between two checks of the seed's components.")] = 30.0
    condition_thresholds: Thresholds = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shoot(Workers):
    sync_period: Annotated[Duration, period("Time between two reconciliations of a Shoot.")] = HOUR
    progress_report_period: Annotated[
        Duration | None,
        setting("Minimum time between two progress reports of an operation.", lasts_at_least(0, NOT_NEGATIVE)),
    ] = None
    reconcile_in_maintenance_only: Annotated[
        bool, setting("Reconcile unchanged Shoots only in their maintenance windows.")
    ] = False
    respect_sync_period_overwrite: Annotated[
        bool,
        setting(
            "Respect annotations of Shoots that change or disable their reconciliation. Always respected in "
            "the namespace `garden`."
        ),
    ] = False
    retry_duration: Annotated[Duration, period("Maximum time to retry a failing operation.")] = 12 * HOUR
    dns_entry_ttl_seconds: Annotated[
        int, setting("TTL of DNS records in seconds.", Check("30 to 600", _ttl), name="dnsEntryTTLSeconds")
    ] = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleExtensionHealthChecks:
    enabled: Annotated[
        bool, setting("Report `Unknown` instead of the health that an extension without a recent heartbeat reports.")
    ] = True
    threshold: Annotated[Duration, period("Maximum age of the last heartbeat of an extension.")] = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootCare(Workers):
    sync_period: Annotated[Duration, period("Time between two checks of a Shoot.")] = 60.0
    stale_extension_health_checks: Annotated[
        StaleExtensionHealthChecks, setting("Handling of outdated health reports of extensions.")
    ] = StaleExtensionHealthChecks()
    managed_resource_progressing_threshold: Annotated[
        Duration | None,
        setting(
            "Maximum time that a ManagedResource may be progressing; unset: reported as a problem at once.",
            lasts_at_least(0, NOT_NEGATIVE),
        ),
    ] = None
    condition_thresholds: Thresholds = ()
    webhook_remediator_enabled: Annotated[bool, setting("Correct webhooks in Shoots that break the cluster.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootState:
    enabled: Enabled = True
    concurrent_syncs: Annotated[
        int,
        setting("Maximum number of Shoots whose state is saved at the same time; 0: none.", at_least(0, NOT_NEGATIVE)),
    ] = 5
    sync_period: Annotated[Duration, period("Time between two saves of a Shoot's state.")] = 6 * HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class FewWorkers(Workers):
    concurrent_syncs: Annotated[int, workers()] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadIdentityTokens(FewWorkers):
    token_expiration_duration: Annotated[Duration, period("Requested lifetime of tokens.")] = 6 * HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Controllers:
    cache_sync_timeout: CacheSyncTimeout = 120.0
    backup_bucket: Annotated[Workers, setting("Mirrors BackupBuckets into the seed.")] = Workers()
    backup_entry: Annotated[BackupEntry, setting("Mirrors BackupEntries into the seed.")] = BackupEntry()
    bastion: Annotated[Workers, setting("Mirrors Bastions into the seed.")] = Workers()
    controller_installation: Annotated[Workers, setting("Installs extensions.")] = Workers()
    controller_installation_care: Annotated[InstallationCare, setting("Maintains conditions of extensions.")] = (
        InstallationCare()
    )
    controller_installation_required: Annotated[
        InstallationRequired, setting("Determines whether objects of the seed require an extension.")
    ] = InstallationRequired()
    gardenlet: Annotated[Gardenlet, setting("Upgrades this gardenlet.")] = Gardenlet()
    managed_seed: Annotated[ManagedSeed, setting("Turns Shoots into seeds.")] = ManagedSeed()
    network_policy: Annotated[
        NetworkPolicy, setting("Maintains the NetworkPolicies that every namespace of Gardener has.")
    ] = NetworkPolicy()
    seed: Annotated[Seed, setting("Reconciles the Seed and renews its Lease.")] = Seed()
    seed_care: Annotated[SeedCare, setting("Maintains conditions of the seed's components.")] = SeedCare()
    shoot: Annotated[Shoot, setting("Reconciles Shoots.")] = Shoot()
    shoot_care: Annotated[ShootCare, setting("Maintains conditions of Shoots.")] = ShootCare()
    shoot_state: Annotated[ShootState, setting("Saves the state of Shoots in the garden.")] = ShootState()
    token_requestor: Annotated[FewWorkers, setting("Requests tokens of ServiceAccounts in the garden.")] = FewWorkers()
    token_requestor_workload_identity: Annotated[
        WorkloadIdentityTokens, setting("Requests tokens of WorkloadIdentities in the garden.")
    ] = WorkloadIdentityTokens()
    vpa_eviction_requirements: Annotated[
        FewWorkers,
        setting("Restricts evictions by VerticalPodAutoscalers that scale pods down, such as to maintenance windows."),
    ] = FewWorkers()
