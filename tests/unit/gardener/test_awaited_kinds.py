"""Objects whose kind is defined by another object of the same ManagedResource, and not served yet."""

from collections.abc import Sequence

from gardener.managed_resource.plan import Basis, Plan, PlannedObject
from kube.objects import Key
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

WIDGETS = Resource("example.com", "v1", "Widget", "widgets", namespaced=True)


def wanted(api_version: str, kind: str, name: str, resource: Resource | None) -> PlannedObject:
    return PlannedObject(
        name=f"{api_version}/{kind}/{name}",
        text="",
        key=Key("", name),
        resource=resource,
        problem="" if resource else "no matches",
        reference={"apiVersion": api_version, "kind": kind, "name": name},
        size=2,
        manifest=b"{}",
        digest=b"",
        is_ignored=False,
        secret="",
    )


def definition(name: str) -> PlannedObject:
    return wanted("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, CUSTOM_RESOURCE_DEFINITIONS)


def awaited(*objects: PlannedObject) -> int:
    stages: Sequence[tuple[PlannedObject, ...]] = tuple((obj,) for obj in objects)
    plan = Plan(
        basis=Basis((), ()),
        stages=tuple(stages),
        restricted={},
        references=(),
        released=(),
        checksum="",
        decode_errors=(),
        unresolved=frozenset({("example.com", "Widget")}),
        size=0,
    )
    return plan.awaited


def test_an_object_waits_for_the_definition_of_its_kind() -> None:
    unserved = wanted("example.com/v1", "Widget", "w", None)
    assert awaited(definition("widgets.example.com"), unserved) == 1
    assert awaited(definition("widgets.example.com"), unserved, wanted("example.com/v2", "Gadget", "g", None)) == 2


def test_an_object_whose_kind_is_served_does_not_wait() -> None:
    assert awaited(definition("widgets.example.com"), wanted("example.com/v1", "Widget", "w", WIDGETS)) == 0


def test_a_kind_that_nothing_here_defines_is_not_awaited() -> None:
    assert awaited(wanted("example.com/v1", "Widget", "w", None)) == 0
    assert awaited(definition("widgets.other.com"), wanted("example.com/v1", "Widget", "w", None)) == 0
