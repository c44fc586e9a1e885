"""Labels by which operators select Seeds: others than the gardenlet decide about them once the Seed is registered."""

from typing import Any

import pytest

from gardener.api import garden
from gardener.garden.seed_graph import Graph
from gardener.keys import CORDONED, CORDONED_BY, SEED_USER_PREFIX
from kit.webhooks.seeds import graph_of, obj, shoot
from kube.clock import parse_time
from kube.objects import Object, key
from kube.resources import Resource
from webhooks.authorizers.seed.rules.common import Write
from webhooks.authorizers.seed.rules.restriction import objection

TRUSTED = {"trust": "high"}


def seed(name: str = "a", labels: dict[str, str] | None = None) -> Object:
    found = obj(garden.SEEDS, name, uid=f"uid-{name}", spec={})
    found["metadata"]["labels"] = labels or {}
    return found


def gardenlet(labels: dict[str, str]) -> Object:
    config = {"seedConfig": {"metadata": {"labels": labels}, "spec": {}}}
    return obj(garden.GARDENLETS, "a", "garden", spec={"config": config})


def child(name: str, labels: dict[str, str], *, template: bool = False) -> Object:
    made = {"metadata": {"labels": labels}, "spec": {}}
    gives = {"seedTemplate": made} if template else {"gardenlet": {"config": {"seedConfig": made}}}
    return obj(garden.MANAGED_SEEDS, name, "garden", uid=f"uid-of-{name}", spec={"shoot": {"name": "host"}, **gives})


def graph(*objects: Object, by: str = "trust") -> Graph:
    """A garden in which each kind of selector selects by a label."""
    selector = {"matchLabels": {by: "high"}}
    expression = {"matchExpressions": [{"key": f"{by}-e", "operator": "NotIn", "values": ["low"]}]}
    return graph_of(
        [
            shoot("host", "a", namespace="garden"),
            obj(garden.CONTROLLER_REGISTRATIONS, "r", spec={"deployment": {"seedSelector": selector}}),
            obj(garden.CLOUD_PROFILES, "c", spec={"seedSelector": expression}),
            obj(garden.EXPOSURE_CLASSES, "e", scheduling={"seedSelector": {"matchLabels": {f"{by}-x": "1"}}}),
            *objects,
        ]
    )


def why_not(graph: Graph, resource: Resource, new: Object, old: Object | None = None, *, by: str = "a") -> str:
    write: dict[str, Any] = {"verb": "update" if old else "create", "key": key(new), "new": new, "old": old or {}}
    now = parse_time("2026-01-01T00:00:00Z")
    found = objection(Write(seed=by, user=f"{SEED_USER_PREFIX}{by}", resource=resource, now=now, **write), graph)
    return found.message if found else ""


@pytest.mark.parametrize(
    ("before", "after", "command"),
    [
        ({}, TRUSTED, "--overwrite trust=high"),
        ({"trust": "low"}, TRUSTED, "--overwrite trust=high"),
        (TRUSTED, {}, "--overwrite trust-"),
        ({}, {"trust-e": "high"}, "--overwrite trust-e=high"),
        ({"trust-x": "0"}, {"trust-x": "1"}, "--overwrite trust-x=1"),
        ({}, {"other": "high"}, ""),
        (TRUSTED, {**TRUSTED, "other": "x"}, ""),
        ({}, {"seed.gardener.cloud/a": "true"}, ""),
    ],
)
def test_labels_of_a_seed_stay_as_others_have_entered_them(
    before: dict[str, str], after: dict[str, str], command: str
) -> None:
    found = why_not(graph(seed(labels=before)), garden.SEEDS, seed(labels=after), seed(labels=before))
    assert command in found if command else not found


def test_a_seed_is_registered_with_any_label() -> None:
    assert not why_not(graph(), garden.SEEDS, seed(labels=TRUSTED))


def test_managed_seeds_report_what_labels_their_seeds_have() -> None:
    managed = graph(seed(labels={"trust": "low"}), child("a", TRUSTED))
    assert not why_not(managed, garden.SEEDS, seed(labels=TRUSTED), seed(labels={"trust": "low"}))
    assert why_not(managed, garden.SEEDS, seed(), seed(labels={"trust": "low"}))
    assert not why_not(graph(child("a", {})), garden.SEEDS, seed(), seed(labels=TRUSTED)), "the operator removed it"
    assert not why_not(graph(child("a", TRUSTED)), garden.SEEDS, seed(labels=TRUSTED))
    assert why_not(graph(child("a", {"trust": "low"})), garden.SEEDS, seed(labels=TRUSTED)), "while it registers"


OWNER = {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "none", "uid": "gone"}]}
CORDONED_SEED = {"annotations": {CORDONED: "true", CORDONED_BY: "uid"}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, OWNER),
        (OWNER, {}),
        (CORDONED_SEED, {}),
        (CORDONED_SEED, {"annotations": {CORDONED: "false", CORDONED_BY: "uid"}}),
        (CORDONED_SEED, {"annotations": {CORDONED: "true"}}),
    ],
)
def test_a_gardenlet_keeps_marks_of_others_at_its_seed(before: Object, after: Object) -> None:
    old, new = ({**seed(), "metadata": seed()["metadata"] | each} for each in (before, after))
    assert why_not(graph(old), garden.SEEDS, new, old)
    assert not why_not(graph(old), garden.SEEDS, old, old)


def test_a_seed_is_registered_without_owners() -> None:
    """The garbage collector would remove it with them, and its gardenlet register it again with other labels."""
    owned = {**seed(), "metadata": seed()["metadata"] | OWNER}
    assert why_not(graph(), garden.SEEDS, owned)


def test_a_gardenlet_object_adds_labels_and_does_not_remove_them() -> None:
    """Its gardenlet may have made it."""
    known = graph(seed(labels=TRUSTED), gardenlet({"trust": "higher"}))
    assert not why_not(known, garden.SEEDS, seed(labels={"trust": "higher"}), seed(labels=TRUSTED))
    assert why_not(graph(seed(labels=TRUSTED), gardenlet({})), garden.SEEDS, seed(), seed(labels=TRUSTED))
    assert why_not(graph(seed()), garden.GARDENLETS, gardenlet(TRUSTED))
    assert why_not(graph(seed()), garden.GARDENLETS, gardenlet(TRUSTED), gardenlet({}))
    assert not why_not(graph(seed(labels=TRUSTED)), garden.GARDENLETS, gardenlet(TRUSTED))


def test_a_parent_chooses_no_labels_of_its_children() -> None:
    own = seed("a")
    known = graph(own, child("c", {}), child("t", {}, template=True))
    assert why_not(known, garden.MANAGED_SEEDS, child("c", TRUSTED), child("c", {}))
    assert why_not(known, garden.MANAGED_SEEDS, child("t", TRUSTED, template=True), child("t", {}, template=True))
    assert why_not(known, garden.SEEDS, seed("t", TRUSTED)), "not in the template"
    assert not why_not(graph(own, child("t", TRUSTED, template=True)), garden.SEEDS, seed("t", TRUSTED))
