"""When the state of a Shoot is saved, and what of it."""

import base64
import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.gardenlet.common.shoot_states.rules.contents import (
    Left,
    holds,
    left_for,
    lost_secrets,
    machines,
    merged,
    referenced,
    state,
    without_gone,
    without_machines,
)
from agent.gardenlet.common.shoot_states.rules.parts import LONGEST, TooLarge, divided, together
from agent.gardenlet.shoot.state.rules import due_in, is_savable
from gardener.garden.shoot_states import MOST_PARTS, names_of_parts, shoot_of_part
from kube.clock import format_time
from kube.objects import Object

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PERIOD = 6 * 3600.0


@pytest.mark.parametrize(
    ("operation", "fields", "savable"),
    [
        ({}, {}, False),
        ({"type": "Create", "state": "Processing"}, {}, False),
        ({"type": "Create", "state": "Succeeded"}, {}, True),
        ({"type": "Reconcile", "state": "Error"}, {}, True),
        ({"type": "Migrate", "state": "Processing"}, {"seedName": "b"}, False),
        ({"type": "Migrate", "state": "Succeeded"}, {}, False),
        ({"type": "Restore", "state": "Processing"}, {}, False),
        ({"type": "Reconcile", "state": "Succeeded"}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, False),
    ],
)
def test_when_it_may_be_saved(operation: Object, fields: Object, savable: bool) -> None:
    seed = fields.get("seedName", "a")
    meta = {name: value for name, value in fields.items() if name == "deletionTimestamp"}
    status = {"seedName": "a", "lastOperation": operation}
    assert is_savable({"metadata": {"name": "s", **meta}, "spec": {"seedName": seed}, "status": status}) is savable


@pytest.mark.parametrize(
    ("saved", "seconds"),
    [
        ("", 0),
        ("yesterday", 0),
        (format_time(NOW - timedelta(hours=1)), 5 * 3600),
        (format_time(NOW - timedelta(hours=7)), 0),
        (format_time(NOW + timedelta(days=1)), 0),  # by a clock that was wrong
    ],
)
def test_when_it_is_due(saved: str, seconds: float) -> None:
    assert due_in(saved, PERIOD, now=NOW) == seconds


def extension(kind: str, name: str, *, status: Object | None = None, **fields: Any) -> Object:
    return {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": name}, "spec": fields, "status": status or {}}


def test_what_is_saved() -> None:
    config: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "uid": "u"},
        "data": {"a": "b"},
    }
    reference = {"name": "c", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}}
    found = state(
        secrets=[{"metadata": {"name": "ca", "labels": {"persist": "true"}}, "data": {"k": "dg=="}}],
        extensions=[
            extension("Network", "n", status={"state": {"n": 1}}),
            extension("ControlPlane", "c", status={"state": {"c": 1}, "resources": [reference]}, purpose="exposure"),
            extension("Extension", "nothing"),
        ],
        data={"ConfigMap/c": referenced(config)},
        machines=None,
    )
    assert found == {
        "gardener": [{"name": "ca", "type": "secret", "labels": {"persist": "true"}, "data": {"k": "dg=="}}],
        "extensions": [
            {"kind": "ControlPlane", "name": "c", "purpose": "exposure", "state": {"c": 1}, "resources": [reference]},
            {"kind": "Network", "name": "n", "state": {"n": 1}},
        ],
        "resources": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "c",
                "data": {**config, "metadata": {"name": "c"}},
            }
        ],
    }


def test_machines_are_saved_by_deployment() -> None:
    deployment = extension("MachineDeployment", "md", replicas=1)
    owned: Object = {"metadata": {"name": "ms", "ownerReferences": [{"name": "md"}]}, "spec": {}}
    meta: Object = {"name": "m", "labels": {"name": "md"}, "uid": "u", "finalizers": ["f"]}
    machine: Object = {"metadata": meta, "status": {"node": "n"}}
    found = machines([deployment], [owned], [machine])
    assert found == {
        "md": {
            "replicas": 1,
            "machineSets": [{"metadata": {"name": "ms"}, "spec": {}}],
            "machines": [{"metadata": {"name": "m", "labels": {"name": "md"}}}],
        }
    }
    saved = state(secrets=[], extensions=[], data={}, machines=found)["gardener"][0]
    assert json.loads(gzip.decompress(base64.b64decode(saved["data"]["state"]))) == {"machineDeployments": found}
    assert state(secrets=[], extensions=[], data={}, machines={})["gardener"] == []


def secret(name: str, config: str, value: str = "dg==") -> Object:
    return {"name": name, "type": "secret", "labels": {"name": config, "persist": "true"}, "data": {"k": value}}


def test_what_was_saved_is_replaced_and_never_removed() -> None:
    saved = {
        "gardener": [
            secret("ca", "ca"),
            secret("key", "key"),
            {"name": "machine-state", "type": "machine-state", "data": {"state": "s"}},
        ],
        "extensions": [{"kind": "Network", "name": "n", "state": {"n": 1}}],
        "resources": [{"kind": "Secret", "name": "s", "data": {"a": "b"}}],
    }
    living = {
        "gardener": [secret("ca", "ca", "bmV3"), {"name": "machine-state", "type": "machine-state", "data": None}],
        "extensions": [{"kind": "Extension", "name": "n", "state": {"e": 1}}],
        "resources": [],
    }
    assert merged(saved, living) == {
        "gardener": [
            {"name": "machine-state", "type": "machine-state", "data": {"state": "s"}},
            secret("ca", "ca", "bmV3"),
            secret("key", "key"),
        ],
        "extensions": [
            {"kind": "Extension", "name": "n", "state": {"e": 1}},
            {"kind": "Network", "name": "n", "state": {"n": 1}},
        ],
        "resources": [{"kind": "Secret", "name": "s", "data": {"a": "b"}}],
    }


def test_what_is_gone_is_left_out_but_for_keys() -> None:
    """As long as nothing is removed by a move, whatever is gone is not needed any more."""
    saved = state_of(network("gone", 0.1), network("n", 0.1)) | {"resources": [{"kind": "Secret", "name": "s"}]}
    living = {"gardener": [], "extensions": [network("n", 0.2), network("new", 0.1)], "resources": []}
    kept = without_gone(saved, living)
    assert kept == state_of(network("n", 0.1))
    assert holds(saved, kept)
    assert not holds(kept, saved)
    assert merged(kept, living) == state_of(network("n", 0.2), network("new", 0.1))


def test_what_is_gone_stands_in_the_way_of_nothing() -> None:
    """Some were saved while they went, since they were too many; what lives takes one part each."""
    before = divided(state_of(*(network(f"gone-{number}", 0.7) for number in range(6))), [])
    living = state_of(*(network(f"n-{number}", 0.7) for number in range(3)))
    saved = together(before)
    with pytest.raises(TooLarge):
        divided(merged(saved, living), before)
    assert together(divided(merged(without_gone(saved, living), living), before)) == living


def test_keys_that_were_rotated_away_are_not_lost() -> None:
    saved = {"gardener": [secret("ca-1", "ca"), secret("key", "key")]}
    assert lost_secrets(saved, {"gardener": [secret("ca-2", "ca"), secret("key", "key")]}) == []
    assert lost_secrets(saved, {"gardener": [secret("ca-2", "ca")]}) == ["key"]


def test_secrets_that_an_extension_has_deleted_are_not_lost() -> None:
    of_extension = secret("ca-of-extension", "ca-of-extension")
    of_extension["labels"]["manager-identity"] = "extension"
    own = secret("ca", "ca")
    own["labels"]["manager-identity"] = "gardenlet"
    assert lost_secrets({"gardener": [of_extension, own]}, {"gardener": [own]}) == []
    assert lost_secrets({"gardener": [of_extension, own]}, {"gardener": [of_extension]}) == ["ca"]


def test_what_an_extension_object_gets_back() -> None:
    reference = {"name": "c", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}}
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    whole = {
        "extensions": [
            {"kind": "ControlPlane", "name": "c", "purpose": "exposure", "state": {"c": 1}, "resources": [reference]}
        ],
        "resources": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "data": data},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "data": {}},
        ],
    }
    assert left_for(whole, extension("ControlPlane", "c", purpose="exposure")) == Left(
        {"state": {"c": 1}, "resources": [reference]}, (data,)
    )
    assert left_for(whole, extension("ControlPlane", "c")) == Left({})
    saved = {"gardener": [{"name": "machine-state", "type": "machine-state", "data": {"state": "s"}}]}
    assert left_for(saved, extension("Worker", "w")) == Left({"state": {"state": "s"}})
    assert left_for(saved, extension("Network", "w")) == left_for({}, extension("Worker", "w")) == Left({})
    assert without_machines(saved)["gardener"] == []
    assert left_for({}, extension("Network", "c")) == Left({})


# --- in how many objects it is


def network(name: str, megabytes: float, note: str = "") -> Object:
    return {"kind": "Network", "name": name, "state": {"a": "x" * int(megabytes * LONGEST), "note": note}}


def state_of(*networks: Object) -> Object:
    return {"gardener": [secret("ca", "ca")], "extensions": list(networks), "resources": []}


def placed(parts: list[Object]) -> list[list[str]]:
    return [[each["name"] for field in ("gardener", "extensions") for each in part[field]] for part in parts]


def test_what_is_small_stays_in_one_object_as_it_is() -> None:
    small = state_of(network("b", 0.1), network("a", 0.1))
    assert divided(small, []) == [small]
    assert divided({"gardener": [], "extensions": [], "resources": []}, [small]) == [state_of() | {"gardener": []}]


def test_what_is_larger_is_divided_and_is_the_same_together() -> None:
    large = state_of(*(network(f"n-{number}", 0.4) for number in range(5)))
    parts = divided(large, [])
    assert placed(parts) == [["ca", "n-0", "n-1"], ["n-2", "n-3"], ["n-4"]]
    assert all(len(json.dumps(each)) < LONGEST + 100 for each in parts)
    assert together(parts) == large
    assert divided(large, parts) == parts


def test_an_entry_stays_in_its_part_or_moves_to_a_later_one() -> None:
    before = divided(state_of(network("a", 0.4), network("b", 0.4), network("c", 0.4)), [])
    assert placed(before) == [["ca", "a", "b"], ["c"]]
    grown = state_of(network("a", 0.7), network("b", 0.4), network("c", 0.4))
    assert placed(divided(grown, before)) == [["ca", "a"], ["b", "c"]]
    # What is new goes where there is room; what is gone leaves some.
    fewer = state_of(network("c", 0.4), network("new", 0.4))
    assert placed(divided(fewer, before)) == [["ca", "new"], ["c"]]
    assert placed(divided(state_of(network("a", 0.4)), before)) == [["ca", "a"]]


def test_wherever_saving_ends_nothing_that_was_saved_is_missing() -> None:
    """New parts are made in their order, then the others are replaced from the last to the first."""
    before = divided(state_of(*(network(name, 0.4, "old") for name in "abcd")), [])
    wanted = divided(state_of(network("a", 0.9, "new"), *(network(name, 0.4, "new") for name in "bcdef")), before)
    present = list(before)
    for number in [*range(len(before), len(wanted)), *reversed(range(len(before)))]:
        present[number : number + 1] = [wanted[number]]
        found = {each["name"]: each["state"]["note"] for each in together(present)["extensions"]}
        assert found.keys() >= set("abcd")
        newest = {each["name"] for part in present for each in part["extensions"] if each["state"]["note"] == "new"}
        assert {name for name, note in found.items() if note == "new"} == newest
    assert present == wanted


@pytest.mark.parametrize(
    ("networks", "reported"),
    [
        ([network("n", 1)], "the largest entry is Network n with 10486.. bytes"),
        (
            [network(f"n-{number}", 0.7) for number in range(MOST_PARTS + 1)],
            r"by kind: Network \d{7} bytes \(9\), secret",
        ),
    ],
    ids=["one entry", "all together"],
)
def test_what_does_not_fit_is_refused_with_its_sizes(networks: list[Object], reported: str) -> None:
    with pytest.raises(TooLarge, match=reported):
        divided(state_of(*networks), [])


def test_names_of_parts_lead_to_their_shoot() -> None:
    names = names_of_parts("s")
    assert (names[:2], len(names)) == (["s", "s--1"], MOST_PARTS)
    assert {shoot_of_part(each) for each in names} == {"s"}
    assert [shoot_of_part(each) for each in ("s-1", "s--0", "s--01", f"s--{MOST_PARTS}", "s--1--1")] == [
        *("s-1", "s--0", "s--01", f"s--{MOST_PARTS}", "s--1--1")
    ]
