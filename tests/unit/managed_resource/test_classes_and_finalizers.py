"""Which instance manages a ManagedResource, and when it has to wait for another one."""

import pytest

from agent.managed_resource.keys import finalizer_of, is_responsible, must_wait

DEFAULT = "resources.gardener.cloud/gardener-resource-manager"
SEED = f"{DEFAULT}-seed"


@pytest.mark.parametrize(
    ("resource_class", "finalizer"), [("resources", DEFAULT), ("", DEFAULT), ("*", DEFAULT), ("seed", SEED)]
)
def test_each_class_has_its_finalizer(resource_class: str, finalizer: str) -> None:
    assert finalizer_of(resource_class) == finalizer


@pytest.mark.parametrize(
    ("resource_class", "of", "responsible"),
    [
        ("resources", None, True),
        ("resources", "", True),
        ("resources", "resources", True),
        ("resources", "seed", False),
        ("", None, True),
        ("seed", "seed", True),
        ("seed", None, False),
        ("seed", "resources", False),
        ("*", None, True),
        ("*", "anything", True),
    ],
)
def test_an_instance_is_responsible_for_its_class(resource_class: str, of: str | None, responsible: bool) -> None:
    assert is_responsible(resource_class, of) is responsible


@pytest.mark.parametrize(
    ("finalizers", "resource_class", "of", "waits"),
    [
        ([], "seed", "seed", False),
        (["example.com/x"], "seed", "seed", False),
        ([SEED], "seed", "seed", False),
        ([DEFAULT], "seed", "seed", True),
        ([DEFAULT], "seed", None, False),
        ([SEED], "resources", None, True),
        (["example.com/x", SEED, DEFAULT], "resources", None, True),
        ([DEFAULT, SEED], "resources", None, False),
        ([SEED], "*", None, True),
        ([DEFAULT], "*", "seed", False),
    ],
)
def test_the_first_finalizer_of_another_class_has_to_go_first(
    finalizers: list[str], resource_class: str, of: str | None, waits: bool
) -> None:
    assert must_wait(finalizers, resource_class=resource_class, of=of) is waits
