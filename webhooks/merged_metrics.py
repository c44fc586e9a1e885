"""The metrics of several processes as those of one.

Numbers are added up: counters, histograms, and gauges too, which count connections, objects or bytes. A few gauges
are the same in all processes, or tell when something began; they are in `_NOT_ADDED`, and the first process tells them.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from prometheus_client import Metric
from prometheus_client.registry import Collector, CollectorRegistry

_NOT_ADDED = frozenset(
    {
        "process_max_fds",
        "process_start_time_seconds",
        "python_info",
        "resource_manager_build_info",
        "resource_manager_config_hash",
        "resource_manager_memory_limit_bytes",
        "resource_manager_webhook_certificate_expiry_timestamp_seconds",
    }
)


class Sample(msgspec.Struct, frozen=True, array_like=True):
    name: str
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct, frozen=True, array_like=True):
    """All samples of a metric in one process."""

    name: str
    documentation: str
    type: str
    samples: list[Sample]


def families_of(registry: CollectorRegistry) -> list[Family]:
    return [
        Family(
            metric.name,
            metric.documentation,
            metric.type,
            [Sample(sample.name, sample.labels, sample.value) for sample in metric.samples],
        )
        for metric in registry.collect()
    ]


class MergedMetrics(Collector):
    """What several processes counted, as a source of metrics."""

    def __init__(self) -> None:
        self._processes: list[list[Family]] = []

    def update(self, processes: Iterable[list[Family]]) -> None:
        """Args: processes: the first tells what can't be added up."""
        self._processes = list(processes)

    def collect(self) -> Iterator[Metric]:
        return merged(self._processes)


def merged(processes: Iterable[Iterable[Family]]) -> Iterator[Metric]:
    described: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for families in processes:
        for family in families:
            described.setdefault(family.name, family)
            of_family = values.setdefault(family.name, {})
            for sample in family.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                if key not in of_family:
                    of_family[key] = sample.value
                elif family.name not in _NOT_ADDED:
                    of_family[key] += sample.value
    for name, family in described.items():
        metric: Any = Metric(name, family.documentation, family.type)
        for (sample_name, labels), value in values[name].items():
            metric.add_sample(sample_name, dict(labels), value)
        yield metric
