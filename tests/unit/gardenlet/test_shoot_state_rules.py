"""When the state of a Shoot is saved, and what of it."""

import base64
import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.gardenlet.shoot.state.rules import due_in, is_savable
from agent.gardenlet.shoot_states.rules.contents import (
    LONGEST,
    Left,
    TooLarge,
    left_for,
    lost_secrets,
    machines,
    merged,
    referenced,
    state,
)
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
        (None, 0),
        ("yesterday", 0),
        (format_time(NOW - timedelta(hours=1)), 5 * 3600),
        (format_time(NOW - timedelta(hours=7)), 0),
        (format_time(NOW + timedelta(days=1)), 0),  # by a clock that was wrong
    ],
)
def test_when_it_is_due(saved: str | None, seconds: float) -> None:
    found = None if saved is None else {"metadata": {"annotations": {"gardener.cloud/timestamp": saved}}}
    assert due_in(found, PERIOD, now=NOW) == seconds


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
    machine: Object = {"metadata": {"name": "m", "labels": {"name": "md"}, "uid": "u"}, "status": {"node": "n"}}
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
    assert state(secrets=[], extensions=[], data={}, machines={})["gardener"][0]["data"] is None


def test_what_is_too_large_is_refused_with_its_sizes() -> None:
    large = extension("Network", "n", status={"state": {"n": "x" * LONGEST}})
    with pytest.raises(
        TooLarge, match=r"it has \d{7} bytes, and may have 1048576; the largest parts of it: Network n \d{7} bytes"
    ):
        state(secrets=[], extensions=[large], data={}, machines=None)


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


def test_together_they_are_bounded_as_well() -> None:
    half = "x" * (LONGEST // 2)
    saved, living = ({"extensions": [{"kind": "Network", "name": name, "state": half}]} for name in ("a", "b"))
    with pytest.raises(TooLarge, match="Network a .*, Network b "):
        merged(saved, living)


def test_keys_that_were_rotated_away_are_not_lost() -> None:
    saved = {"gardener": [secret("ca-1", "ca"), secret("key", "key")]}
    assert lost_secrets(saved, {"gardener": [secret("ca-2", "ca"), secret("key", "key")]}) == []
    assert lost_secrets(saved, {"gardener": [secret("ca-2", "ca")]}) == ["key"]


def test_what_an_extension_object_gets_back() -> None:
    reference = {"name": "c", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}}
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    whole = {
        "spec": {
            "extensions": [
                {
                    "kind": "ControlPlane",
                    "name": "c",
                    "purpose": "exposure",
                    "state": {"c": 1},
                    "resources": [reference],
                }
            ],
            "resources": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "data": data},
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "data": {}},
            ],
        }
    }
    assert left_for(whole, extension("ControlPlane", "c", purpose="exposure")) == Left(
        {"state": {"c": 1}, "resources": [reference]}, (data,)
    )
    assert left_for(whole, extension("ControlPlane", "c")) == Left({})
    assert left_for({}, extension("Network", "c")) == Left({})
