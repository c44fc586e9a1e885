"""Metrics of admission, under the names that existing dashboards read; the label `webhook` is the path.

Each path counts in plain numbers, and a collector reports them when they are scraped: with the library's own counters,
which are made for threads, counting would take a tenth of the time of a request. The series of a path exist with value
0 as soon as it is served.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import REGISTRY, Counter, Gauge
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from kube.runtime.metrics import DECADE_BUCKETS

_LABELS = ("webhook",)

panics = Counter("controller_runtime_webhook_panics_total", "Number of requests whose handler crashed.")
conversion_panics = Counter(
    "controller_runtime_conversion_webhook_panics_total", "Always 0: there are no conversion webhooks."
)
certificate_expiry = Gauge(
    "resource_manager_webhook_certificate_expiry_timestamp_seconds",
    "Unix time at which the server certificate expires.",
    ("file",),
)


class PathMetrics:
    __slots__ = ("buckets", "in_flight", "refusals", "seconds", "statuses")

    def __init__(self) -> None:
        self.in_flight = 0
        self.statuses = {200: 0, 500: 0}
        self.refusals = {403: 0}
        """Number of refusals by the code in the answer."""
        self.seconds = 0.0
        self.buckets = [0] * (len(DECADE_BUCKETS) + 1)

    def answered(self, status: int, seconds: float) -> None:
        self.statuses[status] += 1
        self.seconds += seconds
        self.buckets[bisect_left(DECADE_BUCKETS, seconds)] += 1

    def refused(self, code: int) -> None:
        self.refusals[code] = self.refusals.get(code, 0) + 1


class RequestMetrics(Collector):
    def __init__(self) -> None:
        self._paths: dict[str, PathMetrics] = {}

    def of(self, path: str) -> PathMetrics:
        return self._paths.setdefault(path, PathMetrics())

    def collect(self) -> Iterator[Metric]:
        latency = HistogramMetricFamily(
            "controller_runtime_webhook_latency_seconds", "Duration of a request in seconds.", labels=_LABELS
        )
        requests = CounterMetricFamily(
            "controller_runtime_webhook_requests",
            "Number of requests by path and HTTP status, which is 200 for denied requests, too.",
            labels=(*_LABELS, "code"),
        )
        in_flight = GaugeMetricFamily(
            "controller_runtime_webhook_requests_in_flight", "Number of requests in progress.", labels=_LABELS
        )
        refusals = CounterMetricFamily(
            "resource_manager_webhook_refusals",
            "Number of refused admission requests, by the code in the response.",
            labels=(*_LABELS, "code"),
        )
        for path, counted in self._paths.items():
            bounds = (*map(str, DECADE_BUCKETS), "+Inf")
            buckets = list(zip(bounds, accumulate(counted.buckets), strict=True))
            latency.add_metric((path,), buckets, counted.seconds)
            in_flight.add_metric((path,), counted.in_flight)
            for status, count in counted.statuses.items():
                requests.add_metric((path, str(status)), count)
            for code, count in counted.refusals.items():
                refusals.add_metric((path, str(code)), count)
        yield latency
        yield requests
        yield in_flight
        yield refusals


request_metrics = RequestMetrics()
REGISTRY.register(request_metrics)
