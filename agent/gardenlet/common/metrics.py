"""Metrics of a gardenlet, in addition to those of its controllers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from prometheus_client import Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from agent.gardenlet.common.shoot_metrics import ShootCollector
from agent.shared.token_requestor.metrics import TokenCollector
from config.gardenlet import COMPONENT
from kube.clock import utc_now

gardenlet_cluster_reachable = Gauge(
    "gardenlet_cluster_reachable",
    "1 if the last heartbeat reached the API server of this cluster (garden or seed), otherwise 0.",
    ("cluster",),
)
gardenlet_certificate_start_timestamp_seconds = Gauge(
    "gardenlet_certificate_start_timestamp_seconds",
    "Unix time at which the client certificate for the garden became valid; 0: no certificate.",
)
gardenlet_certificate_expiration_timestamp_seconds = Gauge(
    "gardenlet_certificate_expiration_timestamp_seconds",
    "Unix time at which the client certificate for the garden expires; 0: no certificate.",
)
gardenlet_chart_rendering_duration_seconds = Histogram(
    "gardenlet_chart_rendering_duration_seconds",
    "Duration of rendering a chart of an extension by helm in seconds, including failures and the wait for a slot.",
    buckets=(0.1, 0.5, 1, 5, 15, 30, 60, 120, 300),
)
gardenlet_managed_seeds_waiting_for_rollout = Gauge(
    "gardenlet_managed_seeds_waiting_for_rollout",
    "Number of ManagedSeeds with changed gardenlets that wait for the rollout of others.",
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
            "Remaining lifetime in seconds of the WorkloadIdentity token that expires first; negative: expired.",
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
