"""The `controllers` section of the schema."""

from dataclasses import dataclass, field
from typing import Annotated

from config.checks import (
    at_least,
    each,
    label_selector,
    label_value,
    lasts_at_least,
    namespace_if_given,
    not_empty_namespace,
    one_of,
    required_value,
)
from config.fields import Alias, Both, Duration, Setting, setting
from config.schema_restrictions import Restrictions

Enabled = Annotated[bool, setting("Whether it runs.")]


def _workers(what: str) -> Setting:
    return setting(f"How many {what} are worked on at once.", at_least(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelectorRequirement:
    key: Annotated[str, setting("Name of the label.")] = ""
    operator: Annotated[str, setting("`In`, `NotIn`, `Exists` or `DoesNotExist`.")] = ""
    values: Annotated[tuple[str, ...], setting("Values for `In` and `NotIn`.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    match_labels: Annotated[dict[str, str], setting("Labels to have, all of them.")] = field(default_factory=dict)
    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...], setting("Requirements to meet, all of them.")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageCollector:
    enabled: Enabled = False
    sync_period: Annotated[
        Duration, setting("Time between two rounds, and the most that one may take.", lasts_at_least(15))
    ] = 3600.0
    minimum_object_lifetime: Annotated[
        Duration, setting("Age below which nothing is collected.", lasts_at_least(0, "must be non-negative"))
    ] = 600.0
    dry_run: Annotated[bool, setting("Only log what would be deleted.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    concurrent_syncs: Annotated[int, _workers("ManagedResources")] = 5
    sync_period: Annotated[
        Duration,
        setting("Time between two checks of a ManagedResource, and the most that one may take.", lasts_at_least(15)),
    ] = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CSRApprover:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, _workers("CertificateSigningRequests")] = 1
    machine_namespace: Annotated[
        str | None,
        setting("Namespace of Machines in the source cluster; unset: Machines are not checked.", not_empty_namespace),
    ] = None
    denial_grace_period: Annotated[
        Duration,
        setting(
            "Age up to which a request that would be denied is tried again instead.",
            lasts_at_least(0, "must be non-negative"),
        ),
    ] = 0.0
    strict_checks: Annotated[
        bool,
        setting(
            "Also deny URI and e-mail addresses, usages beyond those of a serving certificate, and users outside "
            "of `system:nodes`."
        ),
    ] = False
    node_address_types: Annotated[
        tuple[str, ...],
        setting(
            "Addresses of Nodes that their serving certificates have to be for, by type.",
            each(one_of("Hostname", "InternalDNS", "ExternalDNS", "InternalIP", "ExternalIP")),
        ),
    ] = ("Hostname", "InternalDNS", "ExternalDNS", "InternalIP", "ExternalIP")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedResource:
    concurrent_syncs: Annotated[int, _workers("ManagedResources")] = 5
    sync_period: Annotated[
        Duration,
        setting("Time between two passes over a ManagedResource, and the most that one may take.", lasts_at_least(15)),
    ] = 60.0
    always_update: Annotated[bool, setting("Write objects in each pass, also those that are as desired.")] = False
    managed_by_label_value: Annotated[
        str,
        setting(
            "Value of the label `resources.gardener.cloud/managed-by` of applied objects.",
            required_value("must specify value of managed-by label"),
            label_value,
        ),
    ] = "gardener"
    inject_labels_only_into_workloads: Annotated[
        bool, setting("Inject labels into `spec.template` only of the kinds known to have a pod template there.")
    ] = False
    restrictions: Annotated[
        Restrictions, setting("What ManagedResources may write, and as whom; see [Multi-tenancy](multi-tenancy.md).")
    ] = field(default_factory=Restrictions)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngressControllerSelector:
    namespace: Annotated[
        str,
        setting(
            "Namespace of the pods.",
            required_value("must specify the namespace of the ingress controller"),
            namespace_if_given,
        ),
    ] = ""
    pod_selector: Annotated[
        LabelSelector, setting("Labels of the pods; used in policies as it is.", label_selector)
    ] = field(default_factory=LabelSelector)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, _workers("Services")] = 5
    namespace_selectors: Annotated[
        tuple[LabelSelector, ...],
        setting(
            "Namespaces whose Services are handled: those that one of these selects; empty: all.", each(label_selector)
        ),
    ] = ()
    ingress_controller_selector: Annotated[
        IngressControllerSelector | None, setting("Pods of the ingress controller; unset: Ingresses are not regarded.")
    ] = None
    require_matching_pods: Annotated[
        bool, setting("Create policies between namespaces only where a pod has the label that they select.")
    ] = False
    from_world_peers: Annotated[
        str,
        setting(
            "Form of the policy for traffic from everywhere: three `explicit` peers (all pods, all IPv4, all IPv6), "
            "or `none`, which some network plugins need to let through traffic from nodes.",
            one_of("explicit", "none"),
            zero_is_unset=True,
        ),
    ] = "explicit"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCriticalComponents:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, _workers("Nodes")] = 5
    backoff: Annotated[
        Duration,
        setting("Time between two checks of a Node that is not ready.", lasts_at_least(0, "must be non-negative")),
    ] = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAgentReconciliationDelay:
    enabled: Enabled = False
    min_delay: Annotated[Duration, setting("Least delay of a Node.", lasts_at_least(0, "must be non-negative"))] = 0.0
    max_delay: Annotated[Duration, setting("Greatest delay of a Node.", lasts_at_least(0, "must be non-negative"))] = (
        300.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInvalidator:
    enabled: Annotated[bool, setting("Whether it runs; must be as in `webhooks.tokenInvalidator`.")] = False
    concurrent_syncs: Annotated[int, setting("How many Secrets are worked on at once; less than 1 means 1.")] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequestor:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, _workers("Secrets")] = 5
    class_: Annotated[
        str | None,
        setting(
            "Only Secrets with this value of the label `resources.gardener.cloud/class` are handled; unset: all.",
            label_value,
            name="class",
            zero_is_unset=True,
        ),
    ] = None
    audiences: Annotated[
        tuple[str, ...],
        setting(
            "Audiences of tokens; an empty list: those of the API server.", each(required_value("must not be empty"))
        ),
    ] = ("gardener",)
    merge_service_account_labels: Annotated[
        bool, setting("Add labels to ServiceAccounts that exist already, instead of replacing theirs.")
    ] = False
    restore_target_kubeconfig: Annotated[bool, setting("Copy the kubeconfig to a target Secret that has lost it.")] = (
        False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IstioClusterConfiguration:
    enabled: Enabled = False
    concurrent_syncs: Annotated[int, _workers("DestinationRules")] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Controllers:
    cluster_id: Annotated[
        str,
        setting(
            "Identity of the source cluster, part of the origin of objects. `<cluster>`: read from the ConfigMap "
            "`kube-system/cluster-identity`; `<default>`: the same, empty if there is none.",
            name="clusterID",
        ),
    ] = ""
    resource_class: Annotated[
        str,
        setting(
            "Class of the ManagedResources that are handled; `*`: all.", required_value("must provide a resource class")
        ),
    ] = "resources"
    cache_sync_timeout: Annotated[
        Duration,
        setting(
            "Time for the caches of a controller to fill; then the process exits.",
            lasts_at_least(0, "must be non-negative"),
            zero_is_unset=True,
        ),
    ] = 120.0
    garbage_collector: Annotated[
        GarbageCollector, setting("Deletes ConfigMaps and Secrets that nothing refers to.")
    ] = field(default_factory=GarbageCollector)
    health: Annotated[Health, setting("Tells whether applied objects are healthy, and whether they progress.")] = field(
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
        NodeAgentReconciliationDelay, setting("Spreads the work of node agents over time.")
    ] = field(default_factory=NodeAgentReconciliationDelay)
    token_invalidator: Annotated[
        TokenInvalidator, setting("Invalidates static tokens of ServiceAccounts.", alias=Alias("tokenValidator"))
    ] = field(default_factory=TokenInvalidator)
    token_requestor: Annotated[TokenRequestor, setting("Requests and renews tokens of ServiceAccounts.")] = field(
        default_factory=TokenRequestor
    )
    istio_cluster_configuration: Annotated[
        IstioClusterConfiguration, setting("Tunes connections of Istio's ingress gateways.")
    ] = field(default_factory=IstioClusterConfiguration)
