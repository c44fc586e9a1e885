"""Which instance manages a ManagedResource, when it has to wait for another one, and where an object comes from."""

from collections.abc import Sequence

import pytest

from gardener.responsibility import (
    Origin,
    belongs_to_class,
    finalizer_of,
    is_ignored,
    is_responsible,
    must_wait,
    parse_origin,
)
from kube.objects import Key, Object

DEFAULT = "resources.gardener.cloud/gardener-resource-manager"
SEED = f"{DEFAULT}-seed"


def managed_resource(of: str | None = None, finalizers: Sequence[str] = ()) -> Object:
    return {"metadata": {"finalizers": list(finalizers)}, "spec": {"class": of}}


@pytest.mark.parametrize(
    ("resource_class", "finalizer"), [("resources", DEFAULT), ("", DEFAULT), ("*", DEFAULT), ("seed", SEED)]
)
def test_each_class_has_its_finalizer(resource_class: str, finalizer: str) -> None:
    assert finalizer_of(resource_class) == finalizer


@pytest.mark.parametrize(
    ("resource_class", "of", "responsible"),
    [
        *(("resources", of, of != "seed") for of in (None, "", "resources", "seed")),
        ("", None, True),
        *(("seed", of, of == "seed") for of in ("seed", None, "", "resources")),
        *(("*", of, True) for of in (None, "anything")),
    ],
)
def test_an_instance_is_responsible_for_its_class(resource_class: str, of: str | None, responsible: bool) -> None:
    assert is_responsible(managed_resource(of), resource_class=resource_class) is responsible
    assert belongs_to_class(managed_resource(of), resource_class=resource_class) is responsible


def test_what_carries_the_finalizer_is_still_a_concern() -> None:
    assert belongs_to_class(managed_resource("other", [SEED]), resource_class="seed")
    assert not belongs_to_class(managed_resource("other", [DEFAULT]), resource_class="seed")


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
def test_the_first_finalizer_of_another_class_goes_first(
    finalizers: list[str], resource_class: str, of: str | None, waits: bool
) -> None:
    assert must_wait(managed_resource(of, finalizers), resource_class=resource_class) is waits


@pytest.mark.parametrize(
    ("value", "ignored"), [("true", True), ("T", True), ("1", True), ("yes", False), ("false", False), (None, False)]
)
def test_a_truthy_annotation_makes_it_ignored(value: str | None, ignored: bool) -> None:
    annotated = {} if value is None else {"resources.gardener.cloud/ignore": value}
    assert is_ignored({"metadata": {"annotations": annotated}}) is ignored


@pytest.mark.parametrize(
    ("text", "origin"), [("ns/mr", Origin(Key("ns", "mr"))), ("id:ns/mr", Origin(Key("ns", "mr"), "id"))]
)
def test_an_origin_is_read_as_it_is_written(text: str, origin: Origin) -> None:
    assert parse_origin(text) == origin
    assert str(origin) == text


@pytest.mark.parametrize("text", ["", "mr", "a/b/c", "id:mr", "id:a/b/c", "a:b:c/d/e"])
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unexpected origin format"):
        parse_origin(text)
