"""Metrics of a gardenlet, in addition to those of its controllers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from prometheus_client import Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from agent.gardenlet.shoot_metrics import ShootCollector
from agent.shared.token_requestor.metrics import TokenCollector
from config.gardenlet import COMPONENT
from kube.clock import utc_now

gardenlet_cluster_reachable = Gauge(
    "gardenlet_cluster_reachable",
    "1 if the last heartbeat reached the API server of this cluster (garden or seed), 0 if not.",
    ("cluster",),
)
gardenlet_certificate_start_timestamp_seconds = Gauge(
    "gardenlet_certificate_start_timestamp_seconds",
    "When the client certificate for the garden became valid, in Unix time; 0: there is none.",
)
gardenlet_certificate_expiration_timestamp_seconds = Gauge(
    "gardenlet_certificate_expiration_timestamp_seconds",
    "When the client certificate for the garden ends, in Unix time; 0: there is none.",
)
gardenlet_flow_task_duration_seconds = Histogram(
    "gardenlet_flow_task_duration_seconds",
    "How long a task of a flow ran, whether it succeeded or failed, with its waits and pauses.",
    ("flow", "task"),
    buckets=(0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800),
)
gardenlet_flow_duration_seconds = Histogram(
    "gardenlet_flow_duration_seconds",
    "How long a flow ran, with all waits of its tasks.",
    ("flow", "result"),
    buckets=(1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200),
)
gardenlet_chart_rendering_duration_seconds = Histogram(
    "gardenlet_chart_rendering_duration_seconds",
    "How long helm took to render a chart of an extension, or to fail at it, waiting for its turn included.",
    buckets=(0.1, 0.5, 1, 5, 15, 30, 60, 120, 300),
)
gardenlet_managed_seeds_waiting_for_rollout = Gauge(
    "gardenlet_managed_seeds_waiting_for_rollout",
    "ManagedSeeds whose changed gardenlets wait until those of others are rolled out.",
)


# --- computed at scrape time


class IdentityTokenCollector(Collector):
    """Remaining lifetime of WorkloadIdentities' tokens; absent without tokens, or on replicas that do not lead."""

    def __init__(self, *, today: Callable[[], datetime] = utc_now) -> None:
        self._today = today
        self._expiries: Callable[[], Iterable[float]] | None = None

    def follow(self, expiries: Callable[[], Iterable[float]]) -> Callable[[], None]:
        """Use this source of expiry times (Unix); return a function that ends the use."""
        self._expiries = expiries

        def end() -> None:
            self._expiries = None

        return end

    def collect(self) -> Iterable[GaugeMetricFamily]:
        first = min(self._expiries(), default=None) if self._expiries else None
        family = GaugeMetricFamily(
            f"{COMPONENT.metrics_prefix}_workload_identity_token_shortest_lifetime_seconds",
            "For how long the token of a WorkloadIdentity that ends first is still valid; negative: it has ended.",
        )
        if first is not None:
            family.add_metric((), first - self._today().timestamp())
        yield family


@dataclass(frozen=True, slots=True)
class Collectors:
    """Metrics computed from the state of control loops."""

    tokens: TokenCollector = field(default_factory=partial(TokenCollector, COMPONENT.metrics_prefix))
    identity_tokens: IdentityTokenCollector = field(default_factory=IdentityTokenCollector)
    shoots: ShootCollector = field(default_factory=ShootCollector)

    def all(self) -> Sequence[Collector]:
        return [self.tokens, self.identity_tokens, self.shoots]
