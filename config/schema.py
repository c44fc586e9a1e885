"""Every field of the configuration file: name, type, default, rules and effect.

The names in the file are the attributes in camel case; times are seconds here and Go durations there. Rules
of a block with a switch hold only while it is on, unless they say otherwise. Rules between fields are in
`validation`. Whatever is declared here appears in the reference of docs/configuration.md.
"""

from dataclasses import dataclass, field
from typing import Annotated

from config.checks import (
    at_least,
    each,
    http_url,
    lasts_at_least,
    lock_kind,
    longer_than_zero,
    namespace,
    namespace_if_given,
    object_name,
    one_of,
    port,
    required_value,
    share,
)
from config.fields import Alias, Both, Duration, setting
from config.schema_controllers import Controllers
from config.schema_webhooks import Webhooks

API_VERSION = "resourcemanager.config.gardener.cloud/v1alpha1"
KIND = "ResourceManagerConfiguration"

LOG_LEVELS = ("debug", "info", "error")
LOG_FORMATS = ("json", "text")


def _one_namespace(name: str) -> tuple[str, ...]:
    return (name,) if name else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConnection:
    kubeconfig: Annotated[str, setting("Path of the kubeconfig; empty: in-cluster configuration.")] = ""
    accept_content_types: Annotated[str, setting("`Accept` header of requests.")] = ""
    content_type: Annotated[str, setting("Wire format; accepted for compatibility, JSON is always used.")] = ""
    qps: Annotated[
        float,
        setting(
            "Requests a second, as one budget for the whole connection; negative: no limit.",
            zero_is_unset=True,
        ),
    ] = 100.0
    burst: Annotated[
        int,
        setting(
            "Requests at once on top of `qps`, while the budget is unused.",
            at_least(0, "must be non-negative"),
            zero_is_unset=True,
        ),
    ] = 130
    namespaces: Annotated[
        tuple[str, ...],
        setting(
            "Namespaces that caches cover; empty: all. Writes and uncached reads are not restricted.",
            each(namespace),
            alias=Alias("namespace", Both.ALIAS_IGNORED, kind=str, convert=_one_namespace),
        ),
    ] = ()
    cache_resync_period: Annotated[
        Duration, setting("How often caches deliver all objects again.", lasts_at_least(10))
    ] = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    leader_elect: Annotated[bool, setting("Whether replicas elect a leader; if not, each acts as one.")] = True
    lease_duration: Annotated[
        Duration, setting("Time after which a silent leader may be replaced.", longer_than_zero, zero_is_unset=True)
    ] = 15.0
    renew_deadline: Annotated[
        Duration, setting("Time after which a leader that cannot renew gives up.", longer_than_zero, zero_is_unset=True)
    ] = 10.0
    retry_period: Annotated[
        Duration, setting("Time between attempts to get or renew the lease.", longer_than_zero, zero_is_unset=True)
    ] = 2.0
    resource_lock: Annotated[str, setting("Kind of the lock.", lock_kind, zero_is_unset=True)] = "leases"
    resource_name: Annotated[str, setting("Name of the Lease.", object_name, zero_is_unset=True)] = (
        "gardener-resource-manager"
    )
    resource_namespace: Annotated[
        str, setting("Namespace of the Lease, in the source cluster.", required_value(), namespace_if_given)
    ] = ""

    @property
    def enabled(self) -> bool:
        return self.leader_elect


@dataclass(frozen=True, slots=True, kw_only=True)
class TLS:
    server_cert_dir: Annotated[
        str,
        setting(
            "Directory with `tls.crt` and `tls.key`; empty: `k8s-webhook-server/serving-certs` in the "
            "directory for temporary files."
        ),
    ] = ""


BindAddress = Annotated[str, setting("Address to listen on, IPv6 without brackets; empty: all addresses.")]
Port = Annotated[int, setting("Port to listen on.", port, zero_is_unset=True)]
OptionalPort = Annotated[int, setting("Port to listen on; 0: not at all.", port)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookServer:
    bind_address: BindAddress = ""
    port: Port = 9449
    tls: Annotated[TLS, setting("Certificate and key of the server.")] = field(default_factory=TLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthProbeServer:
    bind_address: BindAddress = ""
    port: Port = 8081


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsServer:
    bind_address: BindAddress = ""
    port: Port = 8080
    managed_resource_series_limit: Annotated[
        int,
        setting(
            "How many ManagedResources get metrics of their own; the others only count in sums.",
            at_least(0, "must be non-negative"),
        ),
    ] = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPageServer:
    bind_address: Annotated[
        str,
        setting(
            "Address to listen on, IPv6 without brackets. The page asks nobody who they are, so all that is not "
            "loopback is open to whoever reaches it.",
            zero_is_unset=True,
        ),
    ] = "127.0.0.1"
    port: OptionalPort = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    webhooks: Annotated[WebhookServer, setting("HTTPS server of the webhooks.")] = field(default_factory=WebhookServer)
    health_probes: Annotated[HealthProbeServer, setting("HTTP server of `/healthz` and `/readyz`.")] = field(
        default_factory=HealthProbeServer
    )
    metrics: Annotated[MetricsServer, setting("HTTP server of `/metrics`.")] = field(default_factory=MetricsServer)
    status_page: Annotated[StatusPageServer, setting("HTTP server of the [status page](status-page.md).")] = field(
        default_factory=StatusPageServer
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Debugging:
    enable_profiling: Annotated[bool, setting("Whether the metrics server serves `/debug/pprof`.")] = False
    enable_contention_profiling: Annotated[
        bool, setting("Whether contention is profiled too; only read when profiling is on.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    enabled: Annotated[bool, setting("Whether [spans](tracing.md) are sent to a collector.")] = False
    endpoint: Annotated[
        str,
        setting(
            "URL of a collector that takes OTLP by HTTP; `/v1/traces` is added if it has no path.",
            http_url,
            zero_is_unset=True,
        ),
    ] = "http://localhost:4318"
    sampling_rate_per_million: Annotated[
        int,
        setting(
            "How many of a million traces that begin here are recorded; for others, who began them decides.", share
        ),
    ] = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceManagerConfiguration:
    source_client_connection: Annotated[
        ClientConnection, setting("Connection to the cluster with ManagedResources, their Secrets and the Lease.")
    ] = field(default_factory=ClientConnection)
    target_client_connection: Annotated[
        ClientConnection, setting("Connection to the cluster that receives the objects.")
    ] = field(default_factory=ClientConnection)
    leader_election: Annotated[LeaderElection, setting("Which replica runs the controllers.")] = field(
        default_factory=LeaderElection
    )
    server: Annotated[Server, setting("What is listened on.")] = field(default_factory=Server)
    debugging: Annotated[Debugging, setting("Help for developers.")] = field(default_factory=Debugging)
    tracing: Annotated[Tracing, setting("Spans of what is done, by OpenTelemetry.")] = field(default_factory=Tracing)
    log_level: Annotated[str, setting("Least level that is logged.", one_of(*LOG_LEVELS), zero_is_unset=True)] = "info"
    log_format: Annotated[str, setting("Form of log lines.", one_of(*LOG_FORMATS), zero_is_unset=True)] = "json"
    graceful_shutdown_timeout: Annotated[
        Duration,
        setting(
            "Time for everything to stop after SIGTERM or SIGINT; then the process exits with 1.",
            lasts_at_least(0, "must be non-negative"),
        ),
    ] = 5.0
    controllers: Annotated[Controllers, setting("The control loops.")] = field(default_factory=Controllers)
    webhooks: Annotated[Webhooks, setting("The admission and authorization webhooks.")] = field(
        default_factory=Webhooks
    )
