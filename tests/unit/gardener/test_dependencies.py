"""Which ManagedResources another one waits for: what the annotation states, what is enough, and cycles."""

from typing import Any

import pytest

from gardener.managed_resource.dependencies import (
    MOST,
    Dependencies,
    Dependency,
    cycle_of,
    has_objects,
    named_dependencies,
    state_of,
    unmet,
)
from gardener.managed_resource.messages import (
    cycle_message,
    dependant_text,
    dependants_message,
    dependencies_message,
    pending_message,
    pending_text,
)
from kit.objects import conditions, managed_resource, reference
from kube.objects import Key, Object

DEPENDS_ON = "resources.gardener.cloud/depends-on"


def dependant(text: str) -> Object:
    return managed_resource("garden/own", annotations={DEPENDS_ON: text})


def parsed(text: str) -> Dependencies:
    return Dependencies.of(dependant(text), is_permitted=lambda namespace: namespace == "shared")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" , ", []),
        ("b", [("garden", "b", False)]),
        ("b:healthy", [("garden", "b", True)]),
        ("garden/b", [("garden", "b", False)]),
        (" shared/b:healthy ,\nc.d,", [("shared", "b", True), ("garden", "c.d", False)]),
    ],
)
def test_what_is_depended_on(text: str, expected: list[tuple[str, str, bool]]) -> None:
    wanted = tuple(Dependency(Key(namespace, name), healthy) for namespace, name, healthy in expected)
    assert parsed(text) == Dependencies(wanted)


def test_without_the_annotation_there_are_none() -> None:
    assert named_dependencies(managed_resource("garden/own")) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("own", '"own": a ManagedResource can\'t depend on itself'),
        ("garden/own:healthy", "can't depend on itself"),
        ("b:ready", 'must be [NAMESPACE/]NAME[:healthy]; there is no ":ready"'),
        ("b:", 'there is no ":"'),
        ("a/b/c", "must be [NAMESPACE/]NAME[:healthy]: "),
        ("/b", "must be [NAMESPACE/]NAME[:healthy]: "),
        ("B_", "must be [NAMESPACE/]NAME[:healthy]: "),
        ("other/b", '"other/b" is in another namespace, which is neither watched nor allowed by '),
        ("x" * 300, "x" * 80 + "…"),
        (
            ",".join(f"n{number}" for number in range(MOST + 1)),
            f"{MOST + 1} dependencies exceed the limit of {MOST}",
        ),
    ],
)
def test_what_can_not_be_depended_on_is_reported_with_the_field(text: str, problem: str) -> None:
    (found,) = parsed(f"{text}, good").problems if "," not in text else parsed(text).problems
    assert str(found).startswith(f"metadata.annotations[{DEPENDS_ON}]: ")
    assert problem in str(found)
    assert len(str(found)) < 1000


def test_what_is_too_long_is_not_read() -> None:
    (problem,) = parsed(",x" * 125_000).problems
    assert "250000 characters exceed the limit of 25600" in str(problem)
    assert len(str(problem)) < 300
    assert parsed("a," + "b" * 20_000).names == [Key("garden", "a")]


def test_what_is_not_permitted_is_named_nevertheless() -> None:
    assert named_dependencies(dependant("other/b, c, c:healthy")) == [Key("other", "b"), Key("garden", "c")]


def found(**fields: Any) -> Object:
    meta = {name: fields.pop(name) for name in ("annotations", "deletionTimestamp", "generation") if name in fields}
    status = {"observedGeneration": 1, "secretsDataChecksum": "now", "conditions": conditions(**fields)}
    return managed_resource("garden/b", status=status, **{"generation": 1, **meta})


@pytest.mark.parametrize(
    ("dependency", "reason"),
    [
        (found(), ""),
        (None, "does not exist; create it, or remove it from the annotation"),
        (found(deletionTimestamp="2024-01-02T03:04:05Z"), "is being deleted"),
        (found(applied=""), "is not applied yet"),
        (found(applied="False", reason="ApplyFailed"), "is not applied (ApplyFailed)"),
        (found(applied="Progressing", reason="ApplyProgressing"), "is not applied (ApplyProgressing)"),
        (found(generation=2), "has changes that are not applied yet"),
        (
            found(generation=2, annotations={"resources.gardener.cloud/ignore": "true"}),
            "has changes that are not applied yet, since it is ignored",
        ),
        (found(healthy="False"), ""),
    ],
)
def test_when_a_dependency_is_applied(dependency: Object | None, reason: str) -> None:
    assert unmet(Dependency(Key("garden", "b")), dependency) == reason


@pytest.mark.parametrize(
    ("dependency", "reason"),
    [
        (found(), ""),
        (found(healthy=""), "is not healthy yet"),
        (found(healthy="False", reason="DeploymentUnhealthy"), "is not healthy (DeploymentUnhealthy)"),
        (found(healthy="Unknown", reason="ChecksPending"), "is not healthy (ChecksPending)"),
        (found(progressing="True", reason="DeploymentProgressing"), "is not rolled out (DeploymentProgressing)"),
        (found(progressing="Unknown", reason="ChecksPending"), "is not rolled out (ChecksPending)"),
        (found(progressing=""), "is not rolled out yet"),
        (found(generation=2), "has changes that are not applied yet"),
        (found(applied="False"), "is not applied yet"),
    ],
)
def test_when_a_dependency_is_healthy(dependency: Object, reason: str) -> None:
    assert unmet(Dependency(Key("garden", "b"), must_be_healthy=True), dependency) == reason


@pytest.mark.parametrize(("checksum", "is_met"), [(None, True), ("now", True), ("newer", False)])
def test_a_dependency_whose_secrets_have_changed_is_waited_for(checksum: str | None, is_met: bool) -> None:
    assert (unmet(Dependency(Key("garden", "b")), found(), checksum=checksum) == "") == is_met


def test_who_waits_looks_again_if_anything_has_changed_that_counts() -> None:
    variants = [
        None,
        found(),
        found(applied="False"),
        found(applied="False", reason="ApplyFailed"),
        found(healthy="False"),
        found(progressing="True"),
        found(generation=2),
        found(deletionTimestamp="2024-01-02T03:04:05Z"),
        found(annotations={"resources.gardener.cloud/ignore": "true"}),
    ]
    assert all(state_of(a) != state_of(b) for a in variants for b in variants if a is not b)
    assert state_of(found()) == state_of(found(message="another", annotations={"a": "b"}))


def test_who_has_no_objects_needs_nothing() -> None:
    listed = {"resources": [reference("v1 ConfigMap", "garden/c")]}
    finalizers = ["resources.gardener.cloud/gardener-resource-manager-seed"]
    assert has_objects(managed_resource("garden/a", finalizers=finalizers, status=listed))
    assert not has_objects(managed_resource("garden/a", finalizers=["example.com/x"], status=listed))
    assert not has_objects(managed_resource("garden/a", finalizers=finalizers))


GRAPH = {"a": "bd", "b": "c", "c": "a", "d": "d", "e": "a", "f": ""}


def edges(name: Key) -> list[Key]:
    return [Key("n", each) for each in GRAPH.get(name.name, "")]


@pytest.mark.parametrize(
    ("start", "expected"), [("a", "abca"), ("b", "bcab"), ("c", "cabc"), ("d", "dd"), ("e", ""), ("f", ""), ("x", "")]
)
def test_a_cycle_is_found_from_each_member(start: str, expected: str) -> None:
    assert "".join(name.name for name in cycle_of(Key("n", start), edges)) == expected


def test_long_chains_are_no_problem() -> None:
    def following(name: Key) -> list[Key]:
        return [Key("n", str((int(name.name) + 1) % 20_000))]

    assert len(cycle_of(Key("n", "0"), following)) == 20_001


def test_messages() -> None:
    assert dependencies_message({"n/a": "does not exist", "n/b": "is not applied yet"}) == (
        "Waiting for ManagedResource n/a, which does not exist; ManagedResource n/b, which is not applied yet"
    )
    assert dependants_message(["n/b", "n/a"]) == (
        "Waiting until the objects of all ManagedResources that depend on it are removed: n/a, n/b; "
        f"delete these, or remove this one from their annotation {DEPENDS_ON}"
    )
    assert cycle_message(["n/a", "n/b", "n/a"]) == (
        "nothing is written or deleted: ManagedResources depend on each other: n/a -> n/b -> n/a; "
        f"remove one of them from an annotation {DEPENDS_ON}"
    )


def test_what_a_dependant_waits_for_is_named() -> None:
    held = [
        ("a", pending_text("v1/Secret/n/s")),
        ("b", pending_text("v1/Secret/n/t", reason="waits for example.com/a")),
    ]
    assert dependant_text("n/a", pending_message(held)) == 'n/a (there, "v1/Secret/n/t" waits for example.com/a)'
    assert dependant_text("n/a", "All resources are applied.") == "n/a"
