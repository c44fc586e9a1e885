"""Metrics of a garden for operators.

All is computed at each scrape, from the caches that the controllers share. Only a leader has these, and therefore
anything to report; a kind is missing until it has been listed. There are only sums, and the first one of times, so that
a garden of any size has the same few series: Events and the objects themselves have the names. But Seeds and
SeedAutoscalers have series of their own: there are few, and operators need to know how full each one is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from agent.controller_manager.common.api import (
    BY_SEED,
    BY_STATE,
    CLOUD_PROFILES_VIEW,
    CONTROLLER_DEPLOYMENTS_VIEW,
    CONTROLLER_REGISTRATIONS_VIEW,
    CREDENTIALS_BINDINGS_VIEW,
    EXPOSURE_CLASSES_VIEW,
    HELD,
    NAMESPACED_CLOUD_PROFILES_VIEW,
    PROJECTS_VIEW,
    QUOTAS_VIEW,
    SECRET_BINDINGS_VIEW,
    SEED_AUTOSCALERS_VIEW,
    SEEDS_VIEW,
    SHOOTS_VIEW,
    STALE,
)
from agent.controller_manager.seed_autoscaler.rules.loads import amount_of
from gardener.conditions import IN_PROGRESS
from kube.clock import time_or_none
from kube.objects import (
    Object,
    integer,
    key,
    mapping,
    mappings,
    metadata,
    text,
)
from kube.paths import at, mapping_at
from kube.runtime.cache import Store, View

_PREFIX = "controller_manager"
_NONE = "None"
"""Value for unknown states, and for those that no controller has written."""

_HELD: Sequence[View[Object]] = (
    CLOUD_PROFILES_VIEW,
    CONTROLLER_DEPLOYMENTS_VIEW,
    CONTROLLER_REGISTRATIONS_VIEW,
    CREDENTIALS_BINDINGS_VIEW,
    EXPOSURE_CLASSES_VIEW,
    NAMESPACED_CLOUD_PROFILES_VIEW,
    PROJECTS_VIEW,
    QUOTAS_VIEW,
    SECRET_BINDINGS_VIEW,
    SEEDS_VIEW,
)
"""Kinds whose deletion waits as long as others use the object. Without users, it takes less than a second."""

Stores = Mapping[View[Object], Store[Object]]
"""Watched kinds. All is read from their indexes: objects may be many, and large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    """Number of objects of a kind, by their value in the index `BY_STATE`."""

    name: str
    help: str
    view: View[Object]
    label: str
    values: Sequence[str]

    def family(self, stores: Stores) -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"{_PREFIX}_{self.name}", self.help, labels=(self.label,))
        store = stores.get(self.view)
        if store is not None:
            found = {value: store.count(BY_STATE, value) for value in self.values}
            for value, number in {**found, _NONE: len(store) - sum(found.values())}.items():
                family.add_metric((value,), number)
        return family


_SUMS = (
    _Sum(
        name="seeds",
        help="Number of Seeds by the status of their condition GardenletReady.",
        view=SEEDS_VIEW,
        label="gardenlet_ready",
        values=("True", "False", "Unknown", IN_PROGRESS),
    ),
    _Sum(
        name="projects",
        help="Number of Projects by phase.",
        view=PROJECTS_VIEW,
        label="phase",
        values=("Pending", "Ready", "Failed", "Terminating"),
    ),
    _Sum(
        name="shoots_last_maintenance",
        help="Number of Shoots by the state of their last maintenance.",
        view=SHOOTS_VIEW,
        label="state",
        values=("Processing", "Succeeded", "Failed"),
    ),
)


def _stale(projects: Store[Object] | None) -> Iterable[GaugeMetricFamily]:
    number = GaugeMetricFamily(f"{_PREFIX}_projects_stale", "Number of stale Projects.")
    first = GaugeMetricFamily(
        f"{_PREFIX}_projects_first_deletion_timestamp_seconds",
        "Unix time of the next deletion of a stale Project; absent if none is scheduled.",
    )
    if projects is not None:
        number.add_metric((), projects.count(STALE, value=True))
        stale = projects.values_by_index(STALE, value=True)
        _add_first(first, (), (at(project, "status", "staleAutoDeleteTimestamp") for project in stale))
    return number, first


def _held(stores: Stores) -> Iterable[GaugeMetricFamily]:
    number = GaugeMetricFamily(
        f"{_PREFIX}_deletions_waiting", "Number of objects in deletion that are still in use.", labels=("kind",)
    )
    first = GaugeMetricFamily(
        f"{_PREFIX}_deletions_waiting_since_timestamp_seconds",
        "Unix time of the oldest deletion that waits for users of the object; absent if none waits.",
        labels=("kind",),
    )
    for view in _HELD:
        store = stores.get(view)
        if store is None:
            continue
        waiting = store.values_by_index(HELD, value=True)
        number.add_metric((view.resource.kind,), len(waiting))
        _add_first(first, (view.resource.kind,), (metadata(obj).get("deletionTimestamp") for obj in waiting))
    return number, first


def _of_seeds(seeds: Store[Object] | None, shoots: Store[Object] | None) -> Iterable[GaugeMetricFamily]:
    """Capacity, allocatable amount and usage of each Seed."""
    labels = ("seed", "resource")
    capacity = GaugeMetricFamily(f"{_PREFIX}_seed_capacity", "Capacity of a Seed by resource.", labels=labels)
    allocatable = GaugeMetricFamily(
        f"{_PREFIX}_seed_allocatable", "Capacity of a Seed that is available to Shoots, by resource.", labels=labels
    )
    usage = GaugeMetricFamily(f"{_PREFIX}_seed_usage", "Known usage of a Seed by resource.", labels=labels)
    for seed in seeds.values() if seeds is not None else ():
        for family, field in ((capacity, "capacity"), (allocatable, "allocatable")):
            for resource, quantity in mapping_at(seed, "status", field).items():
                if (amount := amount_of(quantity)) is not None:
                    family.add_metric((key(seed).name, resource), float(amount))
    if seeds is not None and shoots is not None:
        for own in seeds.all_keys():
            usage.add_metric((own.name, "shoots"), shoots.count(BY_SEED, own.name))
    return capacity, allocatable, usage


def _of_autoscalers(autoscalers: Store[Object] | None) -> Iterable[GaugeMetricFamily]:
    """Status of each SeedAutoscaler."""
    counts = {
        field: GaugeMetricFamily(f"{_PREFIX}_seed_autoscaler_{name}", documentation, labels=("name",))
        for field, name, documentation in (
            ("currentReplicas", "current_replicas", "Number of current replicas of the set of a SeedAutoscaler."),
            ("desiredReplicas", "desired_replicas", "Number of desired replicas of the set of a SeedAutoscaler."),
            ("pendingShoots", "pending_shoots", "Number of Shoots that wait for a Seed of the set."),
        )
    }
    utilization = GaugeMetricFamily(
        f"{_PREFIX}_seed_autoscaler_utilization",
        "Used share of the allocatable capacity of all Seeds of the set.",
        labels=("name", "resource"),
    )
    for autoscaler in autoscalers.values() if autoscalers is not None else ():
        name, status = key(autoscaler).name, mapping(autoscaler.get("status"))
        for field, family in counts.items():
            family.add_metric((name,), integer(status.get(field)))
        for metric in mappings(status.get("currentMetrics")):
            percent = at(metric, "resource", "current", "averageUtilization")
            if percent is not None:
                utilization.add_metric((name, text(at(metric, "resource", "name"))), integer(percent) / 100)
    return *counts.values(), utilization


def _add_first(family: GaugeMetricFamily, labels: Sequence[str], times: Iterable[object]) -> None:
    known = [time.timestamp() for time in map(time_or_none, times) if time is not None]
    if known:
        family.add_metric(labels, min(known))


class GardenCollector(Collector):
    """Collector of all metrics; `stores` returns the current caches of the controllers."""

    def __init__(self, stores: Callable[[], Iterable[Store[Any]]]) -> None:
        self._stores = stores

    def collect(self) -> Iterable[GaugeMetricFamily]:
        known: Stores = {store.view: store for store in self._stores() if store.synced.is_set()}
        return [
            *(each.family(known) for each in _SUMS),
            *_stale(known.get(PROJECTS_VIEW)),
            *_held(known),
            *_of_seeds(known.get(SEEDS_VIEW), known.get(SHOOTS_VIEW)),
            *_of_autoscalers(known.get(SEED_AUTOSCALERS_VIEW)),
        ]
