"""A ManagedResource of objects, with its Secret."""

from collections.abc import Sequence

import pytest

from gardener.keys import GARBAGE_COLLECTABLE
from gardener.managed_resource.bundle import managed_resource, unready
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.plan import data_of
from gardener.references import annotation_key
from kit import objects
from kit.objects import conditions, config_map, service
from kube.objects import Object, annotations, labels

OBJECTS = (config_map("shop/b"), service("shop/a"), config_map("shop/a"))


def test_the_secret_holds_the_objects_and_is_named_after_them() -> None:
    secret, managed = managed_resource("system", "garden", OBJECTS, resource_class="seed", labels={"role": "x"})
    name = secret["metadata"]["name"]
    assert name.startswith("managedresource-system-")
    assert (secret["immutable"], secret["type"], [*secret["data"]]) == (True, "Opaque", ["data.yaml.br"])
    assert labels(secret) == {GARBAGE_COLLECTABLE: "true"}
    assert managed["spec"] == {"class": "seed", "keepObjects": False, "secretRefs": [{"name": name}]}
    assert (labels(managed), annotations(managed)) == ({"role": "x"}, {annotation_key("secret", name): name})
    found = [item.object for item in decode_secrets([data_of(secret)]).objects]
    assert len(found) == len(OBJECTS)
    assert all(obj in found for obj in OBJECTS)


def test_one_for_a_shoot_has_no_class_and_injects_labels() -> None:
    _, managed = managed_resource(
        "shoot-core-system", "shoot--a--b", OBJECTS, inject_labels={"no-cleanup": "true"}, keep_objects=True
    )
    references = managed["spec"].pop("secretRefs")
    assert managed["spec"] == {"injectLabels": {"no-cleanup": "true"}, "keepObjects": True}
    assert references[0]["name"].startswith("managedresource-shoot-core-system-")


def _named(found: Sequence[Object]) -> str:
    name: str = managed_resource("system", "garden", found)[0]["metadata"]["name"]
    return name


def test_the_name_changes_with_the_objects_and_not_with_their_order() -> None:
    assert _named(OBJECTS) == _named(OBJECTS[::-1])
    assert _named(OBJECTS) != _named(OBJECTS[:2])


@pytest.mark.parametrize(
    ("live", "missing"),
    [
        (None, "it does not exist"),
        (objects.managed_resource("m"), "no resource manager has processed it yet"),
        (objects.managed_resource("m", conditions=conditions()), ""),
        (objects.managed_resource("m", conditions=conditions(healthy="False", message="no pods")), "no pods"),
        (objects.managed_resource("m", conditions=conditions(progressing="True", message="rolls")), "rolls"),
        (objects.managed_resource("m", conditions=conditions(applied="False", reason="ApplyFailed")), "ApplyFailed"),
    ],
)
def test_what_is_missing_until_it_is_ready(live: Object | None, missing: str) -> None:
    assert unready(live) == missing


def test_an_outdated_or_deleted_one_is_not_ready() -> None:
    live = objects.managed_resource("m", conditions=conditions())
    newer = {**live, "metadata": {**live["metadata"], "generation": 2}}
    assert "not applied yet" in unready(newer)
    assert unready({**live, "metadata": {"name": "m", "deletionTimestamp": "x"}}) == "it is being deleted"
