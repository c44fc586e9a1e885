"""The `webhooks` section of the schema."""

from dataclasses import dataclass, field
from typing import Annotated

from process.configuration.blocks import Enabled
from process.configuration.checks import (
    at_least,
    each,
    even_if_disabled,
    labels,
    not_empty_namespace,
    one_of,
    required_value,
    toleration,
)
from process.configuration.fields import Alias, setting

_nonnegative = even_if_disabled(at_least(0, "must be greater than or equal to 0"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook that is on or off and has no further fields."""

    enabled: Enabled = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CRDDeletionProtection:
    enabled: Enabled = False
    protect_bastions: Annotated[bool, setting("Also protect Bastions.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HighAvailabilityConfig:
    enabled: Enabled = False
    default_not_ready_toleration_seconds: Annotated[
        int | None,
        setting(
            "Number of seconds that pods tolerate a Node that is not ready; unset: no toleration is injected.",
            _nonnegative,
        ),
    ] = None
    default_unreachable_toleration_seconds: Annotated[
        int | None,
        setting(
            "Number of seconds that pods tolerate an unreachable Node; unset: no toleration is injected.", _nonnegative
        ),
    ] = None
    behavior: Annotated[
        str,
        setting(
            "Gardener release to follow where releases differ; `seed` is 1.103.",
            one_of("seed", "latest"),
            zero_is_unset=True,
        ),
    ] = "seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesServiceHost:
    enabled: Enabled = False
    host: Annotated[
        str,
        setting(
            "Value of `KUBERNETES_SERVICE_HOST` in pods.", required_value("must specify host when webhook is enabled")
        ),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSchedulerName:
    enabled: Enabled = False
    scheduler_name: Annotated[
        str,
        setting(
            "Scheduler of pods without a scheduler name.",
            required_value("must specify schedulerName when webhook is enabled"),
        ),
    ] = "default-scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedTokenMount:
    enabled: Enabled = False
    expiration_seconds: Annotated[int, setting("Lifetime of mounted tokens.", at_least(600))] = 43200


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    key: Annotated[str, setting("Taint to tolerate; empty, with operator `Exists`: all.")] = ""
    operator: Annotated[str, setting("`Exists` or `Equal`; empty: `Equal`.")] = ""
    value: Annotated[str, setting("Value of the taint for `Equal`.")] = ""
    effect: Annotated[str, setting("`NoSchedule`, `PreferNoSchedule` or `NoExecute`; empty: all.")] = ""
    toleration_seconds: Annotated[
        int | None, setting("Duration of the toleration in seconds, only for `NoExecute`; unset: unlimited.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemComponentsConfig:
    enabled: Enabled = False
    node_selector: Annotated[dict[str, str], setting("Labels of Nodes for system components.", labels)] = field(
        default_factory=dict
    )
    pod_node_selector: Annotated[dict[str, str], setting("Node selector to add to pods.", labels)] = field(
        default_factory=dict
    )
    pod_tolerations: Annotated[
        tuple[Toleration, ...], setting("Tolerations to add to pods.", even_if_disabled(each(toleration)))
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAgentAuthorizer:
    enabled: Enabled = False
    machine_namespace: Annotated[
        str | None,
        setting("Namespace of Machines in the source cluster; unset: no Machines exist.", not_empty_namespace),
    ] = None
    authorize_with_selectors: Annotated[
        bool, setting("Restrict list and watch of pods to requests with a selector for the Node of the node agent.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    crd_deletion_protection: Annotated[
        CRDDeletionProtection, setting("Refuses to delete CRDs and extension resources without confirmation.")
    ] = field(default_factory=CRDDeletionProtection)
    endpoint_slice_hints: Annotated[Webhook, setting("Keeps traffic of Services within a zone.")] = field(
        default_factory=Webhook
    )
    extension_validation: Annotated[Webhook, setting("Validates extension resources.")] = field(default_factory=Webhook)
    high_availability_config: Annotated[
        HighAvailabilityConfig, setting("Sets replicas, spread and tolerations of highly available workloads.")
    ] = field(default_factory=HighAvailabilityConfig)
    kubernetes_service_host: Annotated[
        KubernetesServiceHost, setting("Sets the API server's external name in pods.")
    ] = field(default_factory=KubernetesServiceHost)
    pod_scheduler_name: Annotated[PodSchedulerName, setting("Sets the scheduler of pods.")] = field(
        default_factory=PodSchedulerName
    )
    pod_topology_spread_constraints: Annotated[
        Webhook, setting("Applies topology spread constraints to the pods of one ReplicaSet only.")
    ] = field(default_factory=Webhook)
    projected_token_mount: Annotated[ProjectedTokenMount, setting("Mounts projected tokens of ServiceAccounts.")] = (
        field(default_factory=ProjectedTokenMount)
    )
    seccomp_profile: Annotated[Webhook, setting("Sets the seccomp profile `RuntimeDefault`.")] = field(
        default_factory=Webhook
    )
    system_components_config: Annotated[SystemComponentsConfig, setting("Places system components on their Nodes.")] = (
        field(default_factory=SystemComponentsConfig)
    )
    token_invalidator: Annotated[
        Webhook,
        setting(
            "Replaces static tokens with invalid ones; must equal `controllers.tokenInvalidator`.",
            alias=Alias("tokenValidator"),
        ),
    ] = field(default_factory=Webhook)
    node_agent_authorizer: Annotated[NodeAgentAuthorizer, setting("Authorizes requests of node agents.")] = field(
        default_factory=NodeAgentAuthorizer
    )
    pod_kube_apiserver_load_balancing: Annotated[
        Webhook, setting("Routes pods to the API server through Istio.", name="podKubeAPIServerLoadBalancing")
    ] = field(default_factory=Webhook)
    vpa_in_place_updates: Annotated[Webhook, setting("Enables in-place updates by VerticalPodAutoscalers.")] = field(
        default_factory=Webhook
    )
