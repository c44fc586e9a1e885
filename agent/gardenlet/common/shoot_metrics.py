"""Metrics over all Shoots of a seed.

They are computed at scrape time, from the cache that the controllers share. There are only counts and the longest
durations, so that the number of series does not depend on the number of Shoots: the objects have the names.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from gardener import conditions, operations
from gardener.garden.shoots import is_current, last_operation
from kube.clock import time_or_none, utc_now
from kube.objects import Object, mappings
from kube.paths import at

_OPERATIONS = (
    operations.CREATE,
    operations.RECONCILE,
    operations.DELETE,
    operations.MIGRATE,
    operations.RESTORE,
)
_STATES = (
    operations.PENDING,
    operations.PROCESSING,
    operations.SUCCEEDED,
    operations.ERROR,
    operations.FAILED,
    operations.ABORTED,
)
_STATUSES = ("True", conditions.IN_PROGRESS, "False", "Unknown")
_FIELDS = {
    "conditions": conditions.SHOOT_CONDITIONS,
    "constraints": (
        conditions.HIBERNATION_POSSIBLE,
        conditions.MAINTENANCE_PRECONDITIONS_SATISFIED,
        *conditions.OPTIONAL_CONSTRAINTS,
        conditions.OLD_CA_CERTIFICATE_UNUSED,
    ),
}
"""Status fields that are counted."""
_UNDER_WAY = {operations.PROCESSING, operations.ERROR, operations.ABORTED}


class ShootCollector(Collector):
    """Counts Shoots; empty on replicas that do not lead, and before Shoots are listed."""

    def __init__(self, *, today: Callable[[], datetime] = utc_now) -> None:
        self._today = today
        self._shoots: Callable[[], Iterable[Object]] | None = None

    def follow(self, shoots: Callable[[], Iterable[Object]]) -> Callable[[], None]:
        """Use this source, the Shoots of this seed; return a function that ends the use."""
        self._shoots = shoots

        def end() -> None:
            self._shoots = None

        return end

    def collect(self) -> Iterable[GaugeMetricFamily]:
        number = GaugeMetricFamily(
            "gardenlet_shoots",
            "Number of Shoots by type and state of their last operation.",
            labels=("operation", "state"),
        )
        checked = GaugeMetricFamily(
            "gardenlet_shoots_condition",
            "Number of Shoots by the status of each condition and constraint.",
            labels=("condition", "status"),
        )
        waiting = GaugeMetricFamily(
            "gardenlet_shoots_waiting", "Number of Shoots with changes for which no operation has started."
        )
        longest = GaugeMetricFamily(
            "gardenlet_shoot_operation_longest_seconds",
            "Time since the first attempt of the longest-running operation, in seconds; 0: no operation in progress.",
            labels=("operation",),
        )
        if self._shoots is not None:
            found = list(self._shoots())
            _add_counts(number, _operations(found), ((kind, state) for kind in _OPERATIONS for state in _STATES))
            of_types = ((type_, status) for types in _FIELDS.values() for type_ in types for status in _STATUSES)
            _add_counts(checked, _conditions(found), of_types)
            waiting.add_metric((), sum(not is_current(each) for each in found))
            durations = self._durations(found)
            for kind in _OPERATIONS:
                longest.add_metric((kind,), durations.get(kind, 0.0))
        return number, checked, waiting, longest

    def _durations(self, shoots: Iterable[Object]) -> dict[str, float]:
        """Longest duration by operation, in seconds since its first attempt."""
        found: dict[str, float] = {}
        for each in shoots:
            last, begun = last_operation(each), time_or_none(at(each, "status", "retryCycleStartTime"))
            if begun is not None and last.get("state") in _UNDER_WAY:
                kind = str(last.get("type"))
                found[kind] = max(found.get(kind, 0.0), (self._today() - begun).total_seconds())
        return found


def _operations(shoots: Iterable[Object]) -> Counter[tuple[object, ...]]:
    return Counter((last.get("type"), last.get("state")) for last in map(last_operation, shoots))


def _conditions(shoots: Iterable[Object]) -> Counter[tuple[object, ...]]:
    return Counter(
        (each.get("type"), each.get("status"))
        for shoot in shoots
        for field in _FIELDS
        for each in mappings(at(shoot, "status", field))
    )


def _add_counts(
    family: GaugeMetricFamily, counts: Counter[tuple[object, ...]], known: Iterable[tuple[str, ...]]
) -> None:
    """Add the counts; values unknown to the API get no series."""
    for labels in known:
        family.add_metric(labels, counts[labels])
