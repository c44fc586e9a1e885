"""What operators ask of ManagedResources, as metrics.

All is computed when it is scraped, from the cache of ManagedResources and from what the controllers found last. So a
ManagedResource that is gone has no series, and nothing is counted twice. Only a leader has controllers, and therefore
anything to report.

Series of single ManagedResources are bounded in number by the configuration. Beyond that only sums are exact; what is
not as it should be comes first, so that it is among those with series of their own.
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
    """Where the figures come from."""

    managed_resources: Callable[[], Iterable[tuple[Key, Object]]]
    """Those that this process is responsible for."""
    last_applied: Callable[[Key], float | None]
    """When the last pass that was complete came to its end; as far as this process knows."""
    repairs: Callable[[Key], int]
    """How often objects were put right in short succession, until now."""
    unhealthy: Callable[[Key], int]
    """How many objects are not healthy."""
    progressing: Callable[[Key], int]
    """How many objects are being rolled out."""
    limit: int
    """How many ManagedResources have series of their own."""


class State(NamedTuple):
    """What is reported of one ManagedResource."""

    key: Key
    statuses: Mapping[str, str]
    """By type of condition; `Unknown` where there is none yet."""
    objects: int
    unhealthy: int
    progressing: int
    repairs: int
    last_applied: float | None
    ignored_since: float | None

    @property
    def is_good(self) -> bool:
        return not self.repairs and all(self.statuses[type_] == good for type_, good in RESOURCES_GOOD.items())


def state_of(key: Key, managed_resource: Object, sources: Sources) -> State:
    applied = condition(managed_resource, RESOURCES_APPLIED) or {}
    is_ignored = applied.get("reason") == _IGNORED
    is_applied = applied.get("status") == "True" and not is_ignored
    changed = _changed_at(applied)
    known = sources.last_applied(key)
    return State(
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
    """When it got its status or its message."""
    try:
        times = [parse_time(condition[name]) for name in ("lastTransitionTime", "lastUpdateTime") if name in condition]
    except (ValueError, TypeError):
        return None  # somebody else wrote it
    return max(times).timestamp() if times else None


class ManagedResourceCollector(Collector):
    """Reports what it was last `follow`ing; nothing before."""

    def __init__(self) -> None:
        self._sources: Sources | None = None

    def follow(self, sources: Sources) -> None:
        self._sources = sources

    def collect(self) -> Iterable[GaugeMetricFamily]:
        sources = self._sources
        if sources is None:
            return [*_sums(None), *_own(())]
        states = [state_of(key, obj, sources) for key, obj in sources.managed_resources()]
        states.sort(key=lambda state: (state.is_good, state.key))
        return [*_sums(states, without_series=max(0, len(states) - sources.limit)), *_own(states[: sources.limit])]


def _sums(states: Sequence[State] | None, *, without_series: int = 0) -> Iterable[GaugeMetricFamily]:
    by_condition = GaugeMetricFamily(
        f"{_PREFIX}s", "ManagedResources by condition and its status.", labels=("type", "status")
    )
    objects = GaugeMetricFamily(f"{_PREFIX}s_objects", "Objects of all ManagedResources.", labels=("state",))
    ignored = GaugeMetricFamily(f"{_PREFIX}s_ignored", "ManagedResources that are marked to be ignored.")
    dropped = GaugeMetricFamily(f"{_PREFIX}s_without_series", "ManagedResources that only count in sums.")
    if states is not None:
        found = Counter(item for state in states for item in state.statuses.items())
        for type_, status in sorted({*found, *RESOURCES_GOOD.items()}):
            by_condition.add_metric((type_, status), found[type_, status])
        for name in ("objects", "unhealthy", "progressing"):
            label = "all" if name == "objects" else name
            objects.add_metric((label,), sum(getattr(state, name) for state in states))
        ignored.add_metric((), sum(state.ignored_since is not None for state in states))
        dropped.add_metric((), without_series)
    return by_condition, objects, ignored, dropped


def _own(states: Sequence[State]) -> Iterable[GaugeMetricFamily]:
    conditions = GaugeMetricFamily(
        f"{_PREFIX}_condition",
        "1 for the status that a condition of a ManagedResource has.",
        labels=(*_OWN, "type", "status"),
    )
    for state in states:
        for type_, status in state.statuses.items():
            conditions.add_metric((*_labels(state), type_, status), 1)
    yield conditions
    for name, help_, value in _VALUES:
        family = GaugeMetricFamily(f"{_PREFIX}_{name}", help_, labels=_OWN)
        for state in states:
            if (number := value(state)) is not None:
                family.add_metric(_labels(state), number)
        yield family


def _labels(state: State) -> tuple[str, str]:
    return state.key.namespace, state.key.name


_VALUES: Sequence[tuple[str, str, Callable[[State], float | None]]] = (
    ("objects", "Objects that a ManagedResource lists.", lambda state: state.objects),
    ("unhealthy_objects", "Those that are not healthy, or missing.", lambda state: state.unhealthy),
    ("progressing_objects", "Those that are being rolled out.", lambda state: state.progressing),
    (
        "repairs",
        "How often its objects were put right in short succession; 0 after some quiet.",
        lambda state: state.repairs,
    ),
    (
        "last_applied_timestamp_seconds",
        "When all objects of a ManagedResource were last found or made as they should be.",
        lambda state: state.last_applied,
    ),
    (
        "ignored_since_timestamp_seconds",
        "Since when a ManagedResource is marked to be ignored; only for such.",
        lambda state: state.ignored_since,
    ),
)
