"""The `controllers` section of the schema."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from config.resource_manager.restrictions import Restrictions
from config.shared import NetworkPolicy, TokenRequestor, workers
from gardener import keys
from gardener.health.checks.expressions import LONGEST_EXPRESSION
from gardener.managed_resource.history_limit import MOST
from kube.validation import FieldError, invalid, required, too_long
from process.configuration.blocks import CacheSyncTimeout, Enabled
from process.configuration.checks import (
    each,
    in_range,
    invalid_duration,
    label_value,
    lasts_at_least,
    not_empty_namespace,
    one_of,
    required_value,
)
from process.configuration.fields import Alias, Both, Check, Duration, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageCollector:
    enabled: Enabled = False
    sync_period: Annotated[
        Duration, setting("Time between two rounds, and time limit of a round.", lasts_at_least(15))
    ] = 3600.0
    minimum_object_lifetime: Annotated[
        Duration, setting("Minimum age of objects to delete.", lasts_at_least(0, "must be non-negative"))
    ] = 600.0
    dry_run: Annotated[bool, setting("Only log the objects that would be deleted.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheckExpressions:
    REFUSES_UNKNOWN_FIELDS: ClassVar[bool] = True

    api_version: Annotated[
        str, setting("Group and version, such as `example.com/v1`. The expressions apply to all versions.")
    ] = ""
    kind: Annotated[str, setting("Kind, such as `Widget`.")] = ""
    in_progress: Annotated[str, setting("Expression; if true, the object is progressing.")] = ""
    failed: Annotated[str, setting("Expression; if true and `inProgress` is not, the object is unhealthy.")] = ""
    current: Annotated[
        str,
        setting("Expression, evaluated last; if true, the object is healthy and rolled out, otherwise progressing."),
    ] = ""


def _expressions_errors(path: str, value: HealthCheckExpressions) -> Iterator[FieldError]:
    for name, text in (("apiVersion", value.api_version), ("kind", value.kind), ("current", value.current)):
        if not text:
            yield required(f"{path}.{name}")
    if value.api_version and not _API_VERSION.fullmatch(value.api_version):
        yield invalid(f"{path}.apiVersion", value.api_version, "must be a group and a version, such as example.com/v1")
    for name, text in (("inProgress", value.in_progress), ("failed", value.failed), ("current", value.current)):
        if len(text) > LONGEST_EXPRESSION:
            yield too_long(f"{path}.{name}", most=LONGEST_EXPRESSION)


_API_VERSION = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/v[a-z0-9]+")
_expressions = Check("`apiVersion`, `kind` and `current` given", _expressions_errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    concurrent_syncs: Annotated[int, workers()] = 5
    sync_period: Annotated[
        Duration,
        setting("Time between two checks of a ManagedResource, and time limit of a check.", lasts_at_least(15)),
    ] = 60.0
    check_while_failing: Annotated[
        bool,
        setting("Check the other objects while some cannot be applied. `false`: check none."),
    ] = False
    kstatus: Annotated[
        bool,
        setting(
            "Evaluate custom resources without a specific rule by their "
            "[conditions](managed-resource-status.md#custom-resources)."
        ),
    ] = False
    health_check_exprs: Annotated[
        tuple[HealthCheckExpressions, ...],
        setting(
            "[CEL expressions](managed-resource-status.md#by-expressions) that evaluate custom resources. They "
            "require the extra `cel`.",
            each(_expressions),
        ),
    ] = ()
    ready_condition: Annotated[
        bool,
        setting(
            "Maintain the condition [`Ready`](managed-resource-status.md#ready), which summarizes the other conditions."
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CSRApprover:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, workers()] = 1
    machine_namespace: Annotated[
        str | None,
        setting("Namespace of Machines in the source cluster; unset: Machines are not checked.", not_empty_namespace),
    ] = None
    denial_grace_period: Annotated[
        Duration,
        setting("Age up to which a request is retried instead of denied.", lasts_at_least(0, "must be non-negative")),
    ] = 0.0
    node_address_types: Annotated[
        tuple[str, ...],
        setting(
            "Types of the Node addresses that a serving certificate must contain.",
            each(one_of("Hostname", "InternalDNS", "ExternalDNS", "InternalIP", "ExternalIP")),
        ),
    ] = ("Hostname", "InternalDNS", "ExternalDNS", "InternalIP", "ExternalIP")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedResource:
    concurrent_syncs: Annotated[int, workers()] = 5
    sync_period: Annotated[
        Duration,
        setting(
            "Time between two reconciliations of a ManagedResource, and time limit of a reconciliation.",
            lasts_at_least(15),
        ),
    ] = 60.0
    always_update: Annotated[bool, setting("Write all objects in each reconciliation.")] = False
    workload_removal_timeout: Annotated[
        Duration,
        setting(
            "Maximum delay of removing objects while [objects that may need "
            "them](managed-resource-order.md#order-of-removal) are being removed; `0s`: no delay.",
            lasts_at_least(0, "must be non-negative"),
        ),
    ] = 600.0
    managed_by_label_value: Annotated[
        str,
        setting(
            f"Value of the label `{keys.MANAGED_BY}` of applied objects.",
            required_value("must specify value of managed-by label"),
            label_value,
        ),
    ] = "gardener"
    inject_labels_only_into_workloads: Annotated[
        bool, setting("Inject labels into `spec.template` of built-in workload kinds only.")
    ] = False
    history_limit: Annotated[
        int,
        setting(
            "Number of applied versions to [keep](managed-resource-order.md#history) of each ManagedResource, "
            "unless its annotation sets another number; `0`: none.",
            in_range(0, MOST),
        ),
    ] = 0
    restrictions: Annotated[
        Restrictions,
        setting("Restrictions on the objects that ManagedResources may write; see [Multi-tenancy](multi-tenancy.md)."),
    ] = field(default_factory=Restrictions)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCriticalComponents:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, workers()] = 5
    backoff: Annotated[
        Duration,
        setting("Time between two checks of a Node that is not ready.", lasts_at_least(0, "must be non-negative")),
    ] = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAgentReconciliationDelay:
    enabled: Enabled = False
    min_delay: Annotated[Duration, setting("Minimum delay of a Node.", lasts_at_least(0, "must be non-negative"))] = 0.0
    max_delay: Annotated[Duration, setting("Maximum delay of a Node.", lasts_at_least(0, "must be non-negative"))] = (
        300.0
    )

    def errors(self, path: str) -> Iterator[FieldError]:
        if self.min_delay > self.max_delay:
            detail = "minimum delay must not be higher than maximum delay"
            yield invalid_duration(f"{path}.minDelay", self.min_delay, detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInvalidator:
    enabled: Annotated[bool, setting("Run the controller; must equal `webhooks.tokenInvalidator.enabled`.")] = False
    concurrent_syncs: Annotated[int, setting("Values less than 1 mean 1.")] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class IstioClusterConfiguration:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, workers()] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Controllers:
    cluster_id: Annotated[
        str,
        setting(
            "Identity of the source cluster in the origin of objects. `<cluster>`: read it from the ConfigMap "
            "`kube-system/cluster-identity`; `<default>`: the same, but empty if the ConfigMap does not exist.",
            name="clusterID",
        ),
    ] = ""
    resource_class: Annotated[
        str,
        setting("Class of the ManagedResources to handle; `*`: all.", required_value("must provide a resource class")),
    ] = "resources"
    cache_sync_timeout: CacheSyncTimeout = 120.0
    garbage_collector: Annotated[GarbageCollector, setting("Deletes unreferenced ConfigMaps and Secrets.")] = field(
        default_factory=GarbageCollector
    )
    health: Annotated[Health, setting("Checks whether applied objects are healthy and rolled out.")] = field(
        default_factory=Health
    )
    csr_approver: Annotated[
        CSRApprover,
        setting(
            "Approves certificates of kubelets.",
            name="kubeletCSRApprover",
            alias=Alias("csrApprover"),
            reported_as="csrApprover",
        ),
    ] = field(default_factory=CSRApprover)
    managed_resource: Annotated[
        ManagedResource,
        setting(
            "Applies ManagedResources.",
            alias=Alias("managedResources", Both.NOT_TOGETHER),
            reported_as="managedResources",
        ),
    ] = field(default_factory=ManagedResource)
    network_policy: Annotated[NetworkPolicy, setting("Creates NetworkPolicies for Services.")] = field(
        default_factory=NetworkPolicy
    )
    node_critical_components: Annotated[
        NodeCriticalComponents,
        setting("Keeps pods off a Node until its critical components are ready.", alias=Alias("node")),
    ] = field(default_factory=NodeCriticalComponents)
    node_agent_reconciliation_delay: Annotated[
        NodeAgentReconciliationDelay, setting("Spreads the reconciliations of node agents over time.")
    ] = field(default_factory=NodeAgentReconciliationDelay)
    token_invalidator: Annotated[
        TokenInvalidator, setting("Invalidates static tokens of ServiceAccounts.", alias=Alias("tokenValidator"))
    ] = field(default_factory=TokenInvalidator)
    token_requestor: Annotated[TokenRequestor, setting("Requests and renews tokens of ServiceAccounts.")] = field(
        default_factory=TokenRequestor
    )
    istio_cluster_configuration: Annotated[
        IstioClusterConfiguration, setting("Configures connections of Istio's ingress gateways.")
    ] = field(default_factory=IstioClusterConfiguration)
