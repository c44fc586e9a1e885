"""What is counted of the Shoots of a seed."""

from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from agent.gardenlet.common.shoot_metrics import ShootCollector
from kube.objects import Object

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONGEST = "gardenlet_shoot_operation_longest_seconds"


def shoot(kind: str, state: str, *, observed: int = 1, begun: str = "", **conditions: str) -> Object:
    listed = [{"type": type_, "status": status} for type_, status in conditions.items()]
    status: Object = {"observedGeneration": observed, "lastOperation": {"type": kind, "state": state}}
    status |= {"conditions": listed, "constraints": [{"type": "HibernationPossible", "status": "True"}]}
    return {"metadata": {"generation": 1}, "status": status | ({"retryCycleStartTime": begun} if begun else {})}


def read(*shoots: Object) -> CollectorRegistry:
    collector, registry = ShootCollector(today=lambda: NOW), CollectorRegistry()
    registry.register(collector)
    collector.follow(lambda: shoots)
    return registry


def test_shoots_are_counted_by_their_operations_and_conditions() -> None:
    registry = read(
        shoot("Create", "Succeeded", APIServerAvailable="True"),
        shoot("Reconcile", "Failed", APIServerAvailable="False"),
        shoot("Reconcile", "Failed", APIServerAvailable="False"),
    )
    number = "gardenlet_shoots"
    assert registry.get_sample_value(number, {"operation": "Reconcile", "state": "Failed"}) == 2
    assert registry.get_sample_value(number, {"operation": "Create", "state": "Succeeded"}) == 1
    assert registry.get_sample_value(number, {"operation": "Delete", "state": "Error"}) == 0
    checked = "gardenlet_shoots_condition"
    assert registry.get_sample_value(checked, {"condition": "APIServerAvailable", "status": "False"}) == 2
    assert registry.get_sample_value(checked, {"condition": "HibernationPossible", "status": "True"}) == 3
    assert registry.get_sample_value(checked, {"condition": "EveryNodeReady", "status": "True"}) == 0


def test_an_operation_takes_from_its_first_attempt_until_it_ends() -> None:
    registry = read(
        shoot("Reconcile", "Error", begun="2026-03-01T11:00:00Z"),
        shoot("Reconcile", "Processing", begun="2026-03-01T11:30:00Z"),
        shoot("Delete", "Succeeded", begun="2026-03-01T01:00:00Z"),
        shoot("Create", "Failed"),
    )
    assert registry.get_sample_value(LONGEST, {"operation": "Reconcile"}) == 3600
    assert registry.get_sample_value(LONGEST, {"operation": "Delete"}) == 0
    assert registry.get_sample_value(LONGEST, {"operation": "Create"}) == 0


def test_changes_that_no_operation_has_begun_with_are_counted() -> None:
    registry = read(shoot("Reconcile", "Succeeded", observed=0), shoot("Reconcile", "Processing"))
    assert registry.get_sample_value("gardenlet_shoots_waiting") == 1


def test_the_number_of_series_does_not_depend_on_the_shoots() -> None:
    one = read(shoot("Create", "Succeeded", Mine="True", APIServerAvailable="odd"))
    many = read(*(shoot(f"kind-{each}", f"state-{each}", Other=f"status-{each}") for each in range(100)))
    series = [
        {(each.name, *each.labels.items()) for of in every.collect() for each in of.samples} for every in (one, many)
    ]
    assert series[0] == series[1]
    assert len(series[0]) < 100


def test_without_a_lead_there_is_nothing_to_report() -> None:
    collector, registry = ShootCollector(today=lambda: NOW), CollectorRegistry()
    registry.register(collector)
    collector.follow(lambda: [shoot("Create", "Failed")])()
    assert [sample for family in registry.collect() for sample in family.samples] == []
