"""What came of the candidates, all rounds together; a round that was abandoned counts nothing."""

from enum import StrEnum

from prometheus_client import Counter

from agent.resource_manager.garbage_collector.candidates import RESOURCES

objects_total = Counter(
    "resource_manager_garbage_collector_objects_total",
    "Labelled ConfigMaps and Secrets that were old enough to be collected, by what came of them.",
    ("kind", "result"),
)


class Outcome(StrEnum):
    IN_USE = "in_use"
    DELETED = "deleted"
    CHANGED = "changed"
    """Changed or made anew since it was listed, so it stays."""
    FAILED = "failed"
    DRY_RUN = "dry_run"
    """It would have been deleted."""


def count(kind: str, outcome: Outcome, number: int = 1) -> None:
    objects_total.labels(kind, outcome).inc(number)


def initialize() -> None:
    """All series exist from the start, so that their first increase is seen."""
    for kind in RESOURCES:
        for outcome in Outcome:
            count(kind, outcome, 0)
