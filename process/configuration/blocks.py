"""Blocks of the configurations of all programs.

If programs differ in a default, the configuration of a program has the block with that default:

    metrics: Annotated[HTTPServer, setting("...")] = field(default_factory=partial(HTTPServer, port=2719))
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Protocol

from kube.validation import FieldError, required
from process.configuration.checks import (
    at_least,
    distinct_ports,
    each,
    http_url,
    invalid_duration,
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
from process.configuration.fields import Alias, Both, Duration, setting

LOG_LEVELS = ("debug", "info", "error")
LOG_FORMATS = ("json", "text")
JITTER_FACTOR = 1.2
"""Maximum wait of candidates as a multiple of the retry period."""

Enabled = Annotated[bool, setting("")]
"""Switch of a block; the reference documents it above the block's table."""
BindAddress = Annotated[str, setting("Address to listen on, IPv6 without brackets; empty: all.")]
Port = Annotated[int, setting("Port to listen on.", port, zero_is_unset=True)]
LogLevel = Annotated[str, setting("Minimum level of logged messages.", one_of(*LOG_LEVELS), zero_is_unset=True)]
LogFormat = Annotated[str, setting("Format of log lines.", one_of(*LOG_FORMATS), zero_is_unset=True)]
GracefulShutdownTimeout = Annotated[
    Duration,
    setting(
        "Time to stop after SIGTERM or SIGINT; after that, the process exits with code 1.",
        lasts_at_least(0, "must be non-negative"),
    ),
]
CacheSyncTimeout = Annotated[
    Duration,
    setting(
        "Time to fill the caches; after that, the process exits.",
        lasts_at_least(0, "must be non-negative"),
        zero_is_unset=True,
    ),
]


def _one_namespace(name: str) -> tuple[str, ...]:
    return (name,) if name else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConnection:
    kubeconfig: Annotated[str, setting("Path of the kubeconfig; empty: in-cluster configuration.")] = ""
    accept_content_types: Annotated[str, setting("Ignored; JSON is always used.")] = ""
    content_type: Annotated[str, setting("Ignored; JSON is always used.")] = ""
    qps: Annotated[
        float, setting("Requests per second over the whole connection; negative: no limit.", zero_is_unset=True)
    ] = 100.0
    burst: Annotated[
        int, setting("Requests beyond `qps` after idle time.", at_least(0, "must be non-negative"), zero_is_unset=True)
    ] = 130
    namespaces: Annotated[
        tuple[str, ...],
        setting(
            "Namespaces to watch; empty: all. Writes and uncached reads are not restricted.",
            each(namespace),
            alias=Alias("namespace", Both.ALIAS_IGNORED, kind=str, convert=_one_namespace),
        ),
    ] = ()
    cache_resync_period: Annotated[
        Duration, setting("Time between two reconciliations of all cached objects.", lasts_at_least(10))
    ] = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    leader_elect: Annotated[bool, setting("Elect a leader. If false, each replica acts as leader.")] = True
    lease_duration: Annotated[
        Duration,
        setting(
            "Time without renewal after which another replica takes over the Lease.",
            longer_than_zero,
            zero_is_unset=True,
        ),
    ] = 15.0
    renew_deadline: Annotated[
        Duration,
        setting("Time after which a leader that cannot renew the Lease stops.", longer_than_zero, zero_is_unset=True),
    ] = 10.0
    retry_period: Annotated[
        Duration, setting("Time between attempts to get or renew the Lease.", longer_than_zero, zero_is_unset=True)
    ] = 2.0
    resource_lock: Annotated[str, setting("Kind of the lock.", lock_kind, zero_is_unset=True)] = "leases"
    resource_name: Annotated[str, setting("Name of the Lease.", object_name, zero_is_unset=True)] = ""
    resource_namespace: Annotated[str, setting("Namespace of the Lease.", required_value(), namespace_if_given)] = ""

    @property
    def enabled(self) -> bool:
        return self.leader_elect

    def errors(self, path: str) -> Iterator[FieldError]:
        if self.lease_duration <= self.renew_deadline:
            detail = "must be greater than `RenewDeadline`"
            yield invalid_duration(f"{path}.leaseDuration", self.renew_deadline, detail)
        if self.renew_deadline <= JITTER_FACTOR * self.retry_period:
            detail = f"renewDeadline must be greater than retryPeriod*JitterFactor ({JITTER_FACTOR})"
            yield invalid_duration(f"{path}.renewDeadline", self.renew_deadline, detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class HTTPServer:
    bind_address: BindAddress = ""
    port: Port = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TLS:
    server_cert_dir: Annotated[
        str,
        setting(
            "Directory with `tls.crt` and `tls.key`; empty: `k8s-webhook-server/serving-certs` in the "
            "directory for temporary files."
        ),
    ] = ""
    client_ca_file: Annotated[
        str,
        setting(
            "CA certificates (PEM) for client certificates. Clients without a valid certificate get 401, "
            "except for conversions. Empty: no client certificate is required.",
            name="clientCAFile",
        ),
    ] = ""
    client_names: Annotated[
        tuple[str, ...], setting("Allowed common names of client certificates; empty: any.", each(required_value()))
    ] = ()

    def errors(self, path: str) -> Iterator[FieldError]:
        if self.client_names and not self.client_ca_file:
            yield required(f"{path}.clientCAFile", "must be set where clientNames are")


@dataclass(frozen=True, slots=True, kw_only=True)
class TLSServer(HTTPServer):
    tls: Annotated[TLS, setting("Certificate and key of the server.")] = field(default_factory=TLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Debugging:
    enable_profiling: Annotated[bool, setting("Serve `/debug/pprof` on the metrics server.")] = False
    enable_contention_profiling: Annotated[bool, setting("Ignored.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    enabled: Annotated[bool, setting("Send [spans](tracing.md) to a collector.")] = False
    endpoint: Annotated[
        str,
        setting(
            "URL of an OTLP collector (HTTP); `/v1/traces` is appended if the URL has no path.",
            http_url,
            zero_is_unset=True,
        ),
    ] = "http://localhost:4318"
    sampling_rate_per_million: Annotated[
        int,
        setting(
            "Number of recorded traces per million that start in this process; for other traces, their origin decides.",
            share,
        ),
    ] = 10_000


# --- common parts of every configuration


@dataclass(frozen=True, kw_only=True)
class Server:
    health_probes: Annotated[HTTPServer, setting("HTTP server of `/healthz` and `/readyz`.")] = HTTPServer()
    metrics: Annotated[HTTPServer, setting("HTTP server of `/metrics`.")] = HTTPServer()

    def errors(self, path: str) -> Iterator[FieldError]:
        return distinct_ports(self, path)


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Base of a configuration, which adds fields, and redeclares fields of this one that differ in a default.

    Its connections, one for each of its clusters, precede these fields in the file. They are in another base:

        @dataclass(frozen=True, slots=True, kw_only=True)
        class GreeterConfiguration(Configuration, _Connections):
    """

    server: Annotated[Server, setting("Servers of the program.")] = Server()
    debugging: Annotated[Debugging, setting("Debugging.")] = Debugging()
    tracing: Annotated[Tracing, setting("OpenTelemetry traces.")] = Tracing()
    log_level: LogLevel = "info"
    log_format: LogFormat = "json"
    graceful_shutdown_timeout: GracefulShutdownTimeout = 5.0
    cache_sync_timeout_path: ClassVar[str] = "cacheSyncTimeout"
    """Path in the file, for messages."""

    @property
    def cache_sync_timeout(self) -> float:
        raise NotImplementedError

    def warnings(self) -> Iterator[str]:
        """Yield warnings about settings without effect."""
        return iter(())


class Controllers(Protocol):
    @property
    def cache_sync_timeout(self) -> float: ...


@dataclass(frozen=True, kw_only=True)
class _Election:
    leader_election: Annotated[LeaderElection, setting("Leader election of the controllers, by a Lease.")] = (
        LeaderElection()
    )


@dataclass(frozen=True, kw_only=True)
class ElectingConfiguration(Configuration, _Election):
    """Configuration of a program with control loops, which one replica runs."""

    cache_sync_timeout_path: ClassVar[str] = "controllers.cacheSyncTimeout"

    @property
    def controllers(self) -> Controllers:
        raise NotImplementedError

    @property
    def cache_sync_timeout(self) -> float:
        return self.controllers.cache_sync_timeout
