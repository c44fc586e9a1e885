"""What a pass does with objects that it may not touch: nothing; they stay listed, and nothing new gets listed."""

from typing import Any

from agent.managed_resource.plan import Basis, Plan, make_plan
from agent.managed_resource.references import key_of_reference
from agent.managed_resource.step import Step
from kube.errors import KindNotServed
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, SECRETS, Resource

NAMESPACE = "ns"


def reference(name: str, kind: str = "ConfigMap", **fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, "name": name, "namespace": NAMESPACE, **fields}


def plan(*wanted: str, refused: tuple[str, ...] = (), released: tuple[str, ...] = (), errors: int = 0) -> Plan:
    return Plan(
        basis=Basis((), ()),
        stages=(),
        refused={key_of_reference(reference(name)): "no" for name in refused},
        references=tuple(reference(name, labels={"new": "x"}) for name in (*wanted, *refused)),
        released=tuple(reference(name) for name in released),
        checksum="",
        decode_errors=("bad",) * errors,
        is_complete=True,
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


def test_what_is_refused_and_not_there_is_not_listed_and_not_announced() -> None:
    step = Step.of(listing(), plan(refused=("a",)))
    assert (step.has_new, step.final, step.before(), step.dropped) == (False, [], [], [])


def test_what_is_refused_but_was_applied_before_stays_listed_as_it_was() -> None:
    step = Step.of(listing("a"), plan("b", refused=("a",)))
    assert step.dropped == []
    assert step.final == [reference("a"), reference("b", labels={"new": "x"})]
    assert names(step.before()) == ["b"]


def test_what_may_not_be_removed_stays_listed_and_is_not_dropped() -> None:
    step = Step.of(listing("a", "b"), plan(), kept=keys("a"))
    assert names(step.dropped) == ["b"]
    assert names(step.final) == ["a"]


def test_what_may_not_be_released_stays_listed_and_is_not_released() -> None:
    step = Step.of(listing("a", "b"), plan(released=("a", "b")), kept=keys("a"))
    assert names(step.released) == ["b"]
    assert names(step.final) == ["a"]
    assert step.dropped == []


def test_the_list_of_a_pass_that_kept_something_is_no_change_for_the_next_one() -> None:
    first = Step.of(listing("a", "b", "c"), plan("b", refused=("c",)), kept=keys("a"))
    after = {**listing(), "status": {"resources": first.final}}
    assert not Step.of(after, plan("b", refused=("c",)), kept=keys("a")).is_changed
    assert Step.of(after, plan("b", refused=("c",))).is_changed


def test_nothing_is_kept_twice_while_documents_cannot_be_decoded() -> None:
    step = Step.of(listing("a", "b"), plan(released=("b",), errors=1), kept=keys("a", "b"))
    assert names(step.final) == ["a", "b"]
    assert (step.dropped, step.released) == ([], [])


class Served:
    """Kinds without an API server."""

    async def find(self, api_version: str, kind: str) -> Resource:
        for resource in (CONFIG_MAPS, SECRETS):
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        raise KindNotServed(api_version, kind)


async def test_a_plan_has_what_is_refused_in_no_stage_and_names_the_object() -> None:
    text = b"\n---\n".join(
        f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: x, namespace: {NAMESPACE}}}".encode()
        for kind in ("ConfigMap", "Secret", "Unknown")
    )
    made = await make_plan(
        basis=Basis((), ()),
        data=[(Key(NAMESPACE, "s"), {"objects.yaml": text})],
        discovery=Served(),  # type: ignore[arg-type] # all that is asked of it
        managed_by="m",
        only_workloads=False,
        refusal=lambda resource, key: f"no {resource.kind} {key}" if resource == SECRETS else "",
    )
    assert [wanted.text for wanted in made.wanted()] == ["v1/ConfigMap/ns/x", "v1/Unknown/ns/x"]
    [(name, told)] = made.refused.items()
    assert name == "/Secret/ns/x"
    assert told.startswith('error during apply of object "v1/Secret/ns/x": no Secret ns/x; ')
