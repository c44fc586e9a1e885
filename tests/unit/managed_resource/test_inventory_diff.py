"""What a pass does with objects that it may not touch: nothing; they stay listed, and nothing new gets listed."""

from dataclasses import replace
from typing import Any

from agent.resource_manager.managed_resource.plans import PlanningBudget, make_plan
from gardener.managed_resource.inventory import InventoryDiff
from gardener.managed_resource.plan import Basis, Plan
from gardener.managed_resource.references import key_of_reference
from kit import objects
from kit.objects import Served
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, SECRETS

NAMESPACE = "ns"


def reference(name: str, **fields: Any) -> Object:
    return objects.reference("v1 ConfigMap", f"{NAMESPACE}/{name}", **fields)


def plan(*wanted: str, restricted: tuple[str, ...] = (), released: tuple[str, ...] = (), errors: int = 0) -> Plan:
    return Plan(
        basis=Basis((), ()),
        stages=(),
        restricted={key_of_reference(reference(name)): "no" for name in restricted},
        references=tuple(reference(name, labels={"new": "x"}) for name in (*wanted, *restricted)),
        released=tuple(reference(name) for name in released),
        checksum="",
        decode_errors=("bad",) * errors,
        unresolved=frozenset(),
        size=0,
    )


def listing(*resources: str, pending: tuple[str, ...] = ()) -> Object:
    status = {
        "resources": [reference(name) for name in resources],
        "pendingResources": [reference(name) for name in pending],
    }
    return {"metadata": {"generation": 1}, "status": status}


def names(references: Any) -> list[str]:
    return [each["name"] for each in references]


def keys(*wanted: str) -> set[str]:
    return {key_of_reference(reference(name)) for name in wanted}


def test_before_writing_what_is_new_is_listed_beside_what_is_pending_already() -> None:
    announced = InventoryDiff.of(listing(pending=("b",)), plan("a", "b")).announced()
    assert announced == [reference("a", labels={"new": "x"}), reference("b")]


def test_after_a_pass_only_the_new_objects_are_listed_and_those_whose_fate_is_unknown() -> None:
    assert names(InventoryDiff.of(listing("a"), plan("b")).final) == ["b"]
    assert names(InventoryDiff.of(listing("a"), plan("b", errors=1)).final) == ["a", "b"]


def test_what_is_refused_and_not_there_is_not_listed_and_not_announced() -> None:
    diff = InventoryDiff.of(listing(), plan(restricted=("a",)))
    assert (bool(diff.new), diff.final, diff.announced(), diff.unwanted) == (False, [], [], [])


def test_what_is_refused_but_was_applied_before_stays_listed_as_it_was() -> None:
    diff = InventoryDiff.of(listing("a"), plan("b", restricted=("a",)))
    assert diff.unwanted == []
    assert diff.final == [reference("a"), reference("b", labels={"new": "x"})]
    assert names(diff.announced()) == ["b"]


def test_what_may_not_be_removed_stays_listed_and_is_not_dropped() -> None:
    diff = InventoryDiff.of(listing("a", "b"), plan(), restricted=keys("a"))
    assert names(diff.unwanted) == ["b"]
    assert names(diff.final) == ["a"]


def test_what_may_not_be_released_stays_listed_and_is_not_released() -> None:
    diff = InventoryDiff.of(listing("a", "b"), plan(released=("a", "b")), restricted=keys("a"))
    assert names(diff.released) == ["b"]
    assert names(diff.final) == ["a"]
    assert diff.unwanted == []


def test_the_list_of_a_pass_that_kept_something_is_no_change_for_the_next_one() -> None:
    first = InventoryDiff.of(listing("a", "b", "c"), plan("b", restricted=("c",)), restricted=keys("a"))
    after = {**listing(), "status": {"resources": first.final}}
    assert not InventoryDiff.of(after, plan("b", restricted=("c",)), restricted=keys("a")).is_changed
    assert InventoryDiff.of(after, plan("b", restricted=("c",))).is_changed


def test_nothing_is_kept_twice_while_documents_cannot_be_decoded() -> None:
    diff = InventoryDiff.of(listing("a", "b"), plan(released=("b",), errors=1), restricted=keys("a", "b"))
    assert names(diff.final) == ["a", "b"]
    assert (diff.unwanted, diff.released) == ([], [])


async def test_a_plan_has_what_is_refused_in_no_stage_and_names_the_object() -> None:
    text = b"\n---\n".join(
        f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: x, namespace: {NAMESPACE}}}".encode()
        for kind in ("ConfigMap", "Secret", "Unknown")
    )
    made = await make_plan(
        basis=Basis((), ()),
        data=[(Key(NAMESPACE, "s"), {"objects.yaml": text})],
        size=len(text),
        budget=PlanningBudget(),
        discovery=Served(CONFIG_MAPS, SECRETS),
        managed_by="m",
        only_workloads=False,
        restriction=lambda resource, key: f"no {resource.kind} {key}" if resource == SECRETS else "",
    )
    assert [wanted.text for wanted in made.wanted()] == ["v1/ConfigMap/ns/x", "v1/Unknown/ns/x"]
    [(name, reported)] = made.restricted.items()
    assert name == "/Secret/ns/x"
    assert reported.startswith('error during apply of object "v1/Secret/ns/x": no Secret ns/x; ')


def test_while_it_is_not_known_whether_a_kind_has_namespaces_none_of_its_objects_is_dropped() -> None:
    cluster_wide = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "r"}
    listed = {"metadata": {"generation": 1}, "status": {"resources": [reference("a"), cluster_wide]}}
    guess = {**cluster_wide, "namespace": "as-written"}
    unresolved = frozenset({("rbac.authorization.k8s.io", "ClusterRole")})
    diff = InventoryDiff.of(listed, replace(plan(), references=(guess,), unresolved=unresolved))
    assert diff.unwanted == [reference("a")]
    assert cluster_wide in diff.final
