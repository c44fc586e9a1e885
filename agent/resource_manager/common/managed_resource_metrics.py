"""Metrics about ManagedResources, for operators.

All values are computed during a scrape, from the cache of ManagedResources and the latest findings of the controllers.
So a deleted ManagedResource has no series, and nothing is counted twice. Only a leader has controllers, and therefore
anything to report.

The configuration bounds the number of series of single ManagedResources. Beyond that only sums are exact;
ManagedResources with problems come first, so that they are among those with series of their own.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from gardener.conditions import RESOURCES_APPLIED, RESOURCES_GOOD
from kube.clock import parse_time
from kube.objects import Key, Object, condition

_PREFIX = "resource_manager_managed_resource"
_OWN = ("namespace", "name")
_IGNORED = "ManagedResourceIgnored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Sources of the figures."""

    managed_resources: Callable[[], Iterable[tuple[Key, Object]]]
    """ManagedResources that this process is responsible for."""
    last_applied: Callable[[Key], float | None]
    """Unix time at which the last complete pass ended; None if unknown to this process."""
    repairs: Callable[[Key], int]
    """Number of times that objects were repaired in short succession until now."""
    unhealthy: Callable[[Key], int]
    """Number of objects that are not healthy."""
    progressing: Callable[[Key], int]
    """Number of objects that are being rolled out."""
    limit: int
    """Number of ManagedResources that have series of their own."""


class Figures(NamedTuple):
    """Figures about one ManagedResource."""

    key: Key
    statuses: Mapping[str, str]
    """Status by type of condition; `Unknown` if the condition does not exist yet."""
    objects: int
    unhealthy: int
    progressing: int
    repairs: int
    last_applied: float | None
    ignored_since: float | None

    @property
    def is_good(self) -> bool:
        return not self.repairs and all(self.statuses[type_] == good for type_, good in RESOURCES_GOOD.items())


def figures_of(key: Key, managed_resource: Object, sources: Sources) -> Figures:
    applied = condition(managed_resource, RESOURCES_APPLIED) or {}
    is_ignored = applied.get("reason") == _IGNORED
    is_applied = applied.get("status") == "True" and not is_ignored
    changed = _changed_at(applied)
    known = sources.last_applied(key)
    return Figures(
        key=key,
        statuses={
            type_: (condition(managed_resource, type_) or {}).get("status") or "Unknown" for type_ in RESOURCES_GOOD
        },
        objects=len((managed_resource.get("status") or {}).get("resources") or ()),
        unhealthy=sources.unhealthy(key),
        progressing=sources.progressing(key),
        repairs=sources.repairs(key),
        last_applied=known or (changed if is_applied else None),
        ignored_since=changed if is_ignored else None,
    )


def _changed_at(condition: Object) -> float | None:
    """Unix time of the latest change of a condition's status or message; None if unknown."""
    try:
        times = [parse_time(condition[name]) for name in ("lastTransitionTime", "lastUpdateTime") if name in condition]
    except (ValueError, TypeError):
        return None  # another client wrote it
    return max(times).timestamp() if times else None


class ManagedResourceCollector(Collector):
    """Reports figures from the sources that it `follow`s; nothing before."""

    def __init__(self) -> None:
        self._sources: Sources | None = None

    def follow(self, sources: Sources) -> None:
        self._sources = sources

    def collect(self) -> Iterable[GaugeMetricFamily]:
        sources = self._sources
        if sources is None:
            return [*_sums(None), *_own(())]
        everything = [figures_of(key, obj, sources) for key, obj in sources.managed_resources()]
        everything.sort(key=lambda figures: (figures.is_good, figures.key))
        return [
            *_sums(everything, without_series=max(0, len(everything) - sources.limit)),
            *_own(everything[: sources.limit]),
        ]


def _sums(everything: Sequence[Figures] | None, *, without_series: int = 0) -> Iterable[GaugeMetricFamily]:
    by_condition = GaugeMetricFamily(
        f"{_PREFIX}s", "Number of ManagedResources by condition and status.", labels=("type", "status")
    )
    objects = GaugeMetricFamily(
        f"{_PREFIX}s_objects", "Number of objects of all ManagedResources by state.", labels=("state",)
    )
    ignored = GaugeMetricFamily(f"{_PREFIX}s_ignored", "Number of ignored ManagedResources.")
    dropped = GaugeMetricFamily(f"{_PREFIX}s_without_series", "Number of ManagedResources without their own series.")
    if everything is not None:
        found = Counter(item for figures in everything for item in figures.statuses.items())
        for type_, status in sorted({*found, *RESOURCES_GOOD.items()}):
            by_condition.add_metric((type_, status), found[type_, status])
        for name in ("objects", "unhealthy", "progressing"):
            label = "all" if name == "objects" else name
            objects.add_metric((label,), sum(getattr(figures, name) for figures in everything))
        ignored.add_metric((), sum(figures.ignored_since is not None for figures in everything))
        dropped.add_metric((), without_series)
    return by_condition, objects, ignored, dropped


def _own(everything: Sequence[Figures]) -> Iterable[GaugeMetricFamily]:
    conditions = GaugeMetricFamily(
        f"{_PREFIX}_condition",
        "1 for the current status of a condition of a ManagedResource.",
        labels=(*_OWN, "type", "status"),
    )
    for figures in everything:
        for type_, status in figures.statuses.items():
            conditions.add_metric((*_labels(figures), type_, status), 1)
    yield conditions
    for name, help_, value in _VALUES:
        family = GaugeMetricFamily(f"{_PREFIX}_{name}", help_, labels=_OWN)
        for figures in everything:
            if (number := value(figures)) is not None:
                family.add_metric(_labels(figures), number)
        yield family


def _labels(figures: Figures) -> tuple[str, str]:
    return figures.key.namespace, figures.key.name


_VALUES: Sequence[tuple[str, str, Callable[[Figures], float | None]]] = (
    ("objects", "Number of objects of a ManagedResource.", lambda figures: figures.objects),
    (
        "unhealthy_objects",
        "Number of unhealthy or missing objects of a ManagedResource.",
        lambda figures: figures.unhealthy,
    ),
    (
        "progressing_objects",
        "Number of objects of a ManagedResource that are being rolled out.",
        lambda figures: figures.progressing,
    ),
    (
        "repairs",
        "Number of repairs of its objects in short succession; reset to 0 after a quiet period.",
        lambda figures: figures.repairs,
    ),
    (
        "last_applied_timestamp_seconds",
        "Unix time at which all objects of a ManagedResource were last found or applied as desired.",
        lambda figures: figures.last_applied,
    ),
    (
        "ignored_since_timestamp_seconds",
        "Unix time since which a ManagedResource is ignored; absent for others.",
        lambda figures: figures.ignored_since,
    ),
)
