"""What operators ask of a garden, as metrics.

All is computed when it is scraped, from the caches that the controllers share. Only a leader has these, and therefore
anything to report; of a kind that has not been listed yet nothing is. There are only sums, and of times the first one,
so that a garden of any size has the same few series: Events and the objects themselves have the names. But Seeds and
SeedAutoscalers have series of their own: there are few, and operators ask how full each one is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from agent.controller_manager.api import (
    CLOUD_PROFILES_VIEW,
    CONTROLLER_DEPLOYMENTS_VIEW,
    CONTROLLER_REGISTRATIONS_VIEW,
    CREDENTIALS_BINDINGS_VIEW,
    EXPOSURE_CLASSES_VIEW,
    NAMESPACED_CLOUD_PROFILES_VIEW,
    PROJECTS_VIEW,
    QUOTAS_VIEW,
    SECRET_BINDINGS_VIEW,
    SEED_AUTOSCALERS_VIEW,
    SEEDS_VIEW,
    SHOOTS_VIEW,
)
from gardener.conditions import GARDENLET_READY, IN_PROGRESS
from gardener.garden.scheduling import Usage
from gardener.garden.seed_autoscaler.loads import amount_of
from gardener.keys import DEPLOYMENT_FINALIZER, GARDENER_FINALIZER, REGISTRATION_FINALIZER
from kube.cache import Store, View
from kube.clock import time_or_none
from kube.objects import (
    Object,
    condition,
    finalizers,
    integer,
    is_deleting,
    key,
    mapping,
    mappings,
    metadata,
    text,
)
from kube.paths import at, mapping_at

_PREFIX = "controller_manager"
_NONE = "None"
"""The value for what is not told, and for what no controller has written."""

_HELD: Mapping[View[Object], str] = {
    CLOUD_PROFILES_VIEW: GARDENER_FINALIZER,
    CONTROLLER_DEPLOYMENTS_VIEW: DEPLOYMENT_FINALIZER,
    CONTROLLER_REGISTRATIONS_VIEW: REGISTRATION_FINALIZER,
    CREDENTIALS_BINDINGS_VIEW: GARDENER_FINALIZER,
    EXPOSURE_CLASSES_VIEW: GARDENER_FINALIZER,
    NAMESPACED_CLOUD_PROFILES_VIEW: GARDENER_FINALIZER,
    PROJECTS_VIEW: GARDENER_FINALIZER,
    QUOTAS_VIEW: GARDENER_FINALIZER,
    SECRET_BINDINGS_VIEW: GARDENER_FINALIZER,
    SEEDS_VIEW: REGISTRATION_FINALIZER,
}
"""What holds an object in deletion as long as others use it. Without users, it goes within a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    """How many objects of a kind there are, by the one of these values that they have."""

    name: str
    help: str
    view: View[Object]
    label: str
    values: Sequence[str]
    value: Callable[[Object], str]

    def family(self, objects: Sequence[Object] | None) -> GaugeMetricFamily:
        """Args: objects: None while they are not known."""
        family = GaugeMetricFamily(f"{_PREFIX}_{self.name}", self.help, labels=(self.label,))
        if objects is not None:
            found = Counter(value if value in self.values else _NONE for value in map(self.value, objects))
            for value in (*self.values, _NONE):
                family.add_metric((value,), found[value])
        return family


_SUMS = (
    _Sum(
        name="seeds",
        help="Seeds by the status of their condition GardenletReady.",
        view=SEEDS_VIEW,
        label="gardenlet_ready",
        values=("True", "False", "Unknown", IN_PROGRESS),
        value=lambda seed: text((condition(seed, GARDENLET_READY) or {}).get("status")),
    ),
    _Sum(
        name="projects",
        help="Projects by phase.",
        view=PROJECTS_VIEW,
        label="phase",
        values=("Pending", "Ready", "Failed", "Terminating"),
        value=lambda project: text(at(project, "status", "phase")),
    ),
    _Sum(
        name="shoots_last_maintenance",
        help="Shoots by the state of their last maintenance.",
        view=SHOOTS_VIEW,
        label="state",
        values=("Processing", "Succeeded", "Failed"),
        value=lambda shoot: text(at(shoot, "status", "lastMaintenance", "state")),
    ),
)


def _stale(projects: Sequence[Object] | None) -> Iterable[GaugeMetricFamily]:
    number = GaugeMetricFamily(f"{_PREFIX}_projects_stale", "Projects that nobody uses.")
    first = GaugeMetricFamily(
        f"{_PREFIX}_projects_first_deletion_timestamp_seconds",
        "When the next Project is deleted because nobody uses it; only if there is one.",
    )
    if projects is not None:
        statuses = [mapping(project.get("status")) for project in projects if not is_deleting(project)]
        number.add_metric((), sum(bool(status.get("staleSinceTimestamp")) for status in statuses))
        _add_first(first, (), (status.get("staleAutoDeleteTimestamp") for status in statuses))
    return number, first


def _held(objects: Mapping[View[Object], Sequence[Object]]) -> Iterable[GaugeMetricFamily]:
    number = GaugeMetricFamily(
        f"{_PREFIX}_deletions_waiting", "Objects in deletion that others still use.", labels=("kind",)
    )
    first = GaugeMetricFamily(
        f"{_PREFIX}_deletions_waiting_since_timestamp_seconds",
        "When the deletion that waits longest was asked for; only if there is one.",
        labels=("kind",),
    )
    for view, finalizer in _HELD.items():
        known = objects.get(view)
        if known is None:
            continue
        waiting = [obj for obj in known if is_deleting(obj) and finalizer in finalizers(obj)]
        number.add_metric((view.resource.kind,), len(waiting))
        _add_first(first, (view.resource.kind,), (metadata(obj).get("deletionTimestamp") for obj in waiting))
    return number, first


def _of_seeds(seeds: Sequence[Object] | None, shoots: Sequence[Object] | None) -> Iterable[GaugeMetricFamily]:
    """What is on each Seed, and what has room."""
    labels = ("seed", "resource")
    capacity = GaugeMetricFamily(f"{_PREFIX}_seed_capacity", "What a Seed has of a resource.", labels=labels)
    allocatable = GaugeMetricFamily(f"{_PREFIX}_seed_allocatable", "What Shoots may use of it.", labels=labels)
    usage = GaugeMetricFamily(f"{_PREFIX}_seed_usage", "What is in use of it, as far as it is known.", labels=labels)
    for seed in seeds or ():
        for family, field in ((capacity, "capacity"), (allocatable, "allocatable")):
            for resource, quantity in mapping_at(seed, "status", field).items():
                if (amount := amount_of(quantity)) is not None:
                    family.add_metric((key(seed).name, resource), float(amount))
    if seeds is not None and shoots is not None:
        used = Usage.of(shoots)
        for seed in seeds:
            usage.add_metric((key(seed).name, "shoots"), used(key(seed).name))
    return capacity, allocatable, usage


def _of_autoscalers(autoscalers: Sequence[Object] | None) -> Iterable[GaugeMetricFamily]:
    """What the status of each says."""
    counts = {
        field: GaugeMetricFamily(f"{_PREFIX}_seed_autoscaler_{name}", told, labels=("name",))
        for field, name, told in (
            ("currentReplicas", "current_replicas", "Replicas that the set of a SeedAutoscaler has."),
            ("desiredReplicas", "desired_replicas", "Replicas that it is to have."),
            ("pendingShoots", "pending_shoots", "Shoots that wait for a Seed of it."),
        )
    }
    utilization = GaugeMetricFamily(
        f"{_PREFIX}_seed_autoscaler_utilization",
        "Share of what can be allocated that is in use, on all Seeds of the set.",
        labels=("name", "resource"),
    )
    for autoscaler in autoscalers or ():
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
    """Reports what it was last `follow`ing; nothing before."""

    def __init__(self) -> None:
        self._stores: Callable[[], Iterable[Store[Any]]] = tuple

    def follow(self, stores: Callable[[], Iterable[Store[Any]]]) -> None:
        """Args: stores: what the controllers watch in the garden now."""
        self._stores = stores

    def collect(self) -> Iterable[GaugeMetricFamily]:
        objects = self._objects()
        return [
            *(each.family(objects.get(each.view)) for each in _SUMS),
            *_stale(objects.get(PROJECTS_VIEW)),
            *_held(objects),
            *_of_seeds(objects.get(SEEDS_VIEW), objects.get(SHOOTS_VIEW)),
            *_of_autoscalers(objects.get(SEED_AUTOSCALERS_VIEW)),
        ]

    def _objects(self) -> Mapping[View[Object], Sequence[Object]]:
        """Those of each kind that is known."""
        known = {store.view: store for store in self._stores() if store.synced.is_set()}
        views = {*_HELD, SEED_AUTOSCALERS_VIEW, *(each.view for each in _SUMS)}
        return {view: [obj for _, obj in known[view].items()] for view in views if view in known}


garden = GardenCollector()
REGISTRY.register(garden)
