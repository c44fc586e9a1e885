"""What is reported about Seeds, and about the Shoots of lost ones."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.controller_manager.common.rules.garden_secrets import GardenSecret
from agent.controller_manager.seed import backup_buckets_check as backup_buckets
from agent.controller_manager.seed import extensions_check as extensions
from agent.controller_manager.seed import lifecycle
from agent.controller_manager.seed.secrets import copy_of, has_to_be_made_anew, updated
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import responsible_seed
from kit.garden_objects import garden_object
from kube.conditions import Condition
from kube.objects import Object, mapping
from kube.paths import at, with_value

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
_TIME = "2026-01-01T12:00:00Z"


# --- BackupBuckets


def bucket(name: str, error: Any = None) -> Object:
    return {"metadata": {"name": name}, "status": {"lastError": error} if error is not None else {}}


@pytest.mark.parametrize(
    ("buckets", "status", "reason", "message"),
    [
        ([], "Unknown", "BackupBucketsGone", "Backup Buckets are gone."),
        ([bucket("a")], "True", "BackupBucketsAvailable", "Backup Buckets are available."),
        (
            [bucket("a", {"description": "x"}), bucket("b"), bucket("c", {})],
            "False",
            "BackupBucketsError",
            "The following BackupBuckets have issues:\n* Name: a, Error: x\n* Name: c, Error: ",
        ),
    ],
)
def test_buckets(buckets: list[Object], status: str, reason: str, message: str) -> None:
    assert backup_buckets.condition_of(buckets) == Condition("BackupBucketsReady", status, reason, message)


# --- ControllerInstallations


def installation(name: str, **status: str) -> Object:
    """Without a status, a condition is left out."""
    reported = {"Valid": "True", "Installed": "True", "Healthy": "True", "Progressing": "False", **status}
    conditions = [{"type": kind, "status": each, "message": f"{kind} m"} for kind, each in reported.items() if each]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


INCOMPLETE = "not all required conditions found in ControllerInstallation"


@pytest.mark.parametrize(
    ("installations", "reason", "message"),
    [
        ([], "AllExtensionsReady", ""),
        ([installation("a")], "AllExtensionsReady", ""),
        (
            [{"metadata": {"name": "a"}}],
            "NotAllExtensionsInstalled",
            "installed: map[a:extension was not yet installed]",
        ),
        ([installation("a", Valid="False")], "NotAllExtensionsValid", "valid: map[a:Valid m]"),
        ([installation("a", Installed="Unknown")], "NotAllExtensionsInstalled", "installed: map[a:Installed m]"),
        ([installation("a", Healthy="Unknown")], "NotAllExtensionsHealthy", "healthy: map[a:Healthy m]"),
        ([installation("a", Progressing="True")], "SomeExtensionsProgressing", "progressing: map[a:Progressing m]"),
        ([installation("a", Progressing="Unknown")], "SomeExtensionsProgressing", "progressing: map[a:Progressing m]"),
        ([installation("a", Valid="")], "NotAllExtensionsHealthy", f"healthy: map[a:{INCOMPLETE}]"),
        ([installation("a", Valid="", Healthy="False")], "NotAllExtensionsHealthy", "healthy: map[a:Healthy m]"),
        (
            [installation("a", Valid="", Installed="False")],
            "NotAllExtensionsInstalled",
            "installed: map[a:Installed m]",
        ),
        (
            [installation("b", Healthy="False"), installation("a", Healthy="False"), installation("c")],
            "NotAllExtensionsHealthy",
            "healthy: map[a:Healthy m b:Healthy m]",
        ),
        (
            [installation("b", Healthy="False"), installation("a", Installed="False")],
            "NotAllExtensionsInstalled",
            "installed: map[a:Installed m]",
        ),
    ],
)
def test_installations(installations: list[Object], reason: str, message: str) -> None:
    found = extensions.condition_of(installations)
    assert (found.type, found.status == "True", found.reason) == ("ExtensionsReady", not message, reason)
    assert found.message.endswith(message)


# --- lost Seeds


def test_when_a_seed_is_lost() -> None:
    lease = {"spec": {"renewTime": "2026-01-01T12:00:00.500000Z"}}
    lapses = lifecycle.lapses(lifecycle.renewal_of(lease), monitor_period=40)
    assert lapses == NOW + timedelta(seconds=40.5)
    damaged: list[Object] = [{}, {"spec": {}}, {"spec": {"renewTime": "soon"}}, {"spec": {"renewTime": 5}}]
    for broken in damaged:
        assert lifecycle.lapses(lifecycle.renewal_of(broken), monitor_period=40) is None


def test_since_when_a_seed_is_unknown() -> None:
    def seed(status: str) -> Object:
        return {"status": {"conditions": [{"type": "GardenletReady", "status": status, "lastTransitionTime": _TIME}]}}

    assert lifecycle.unknown_since(seed("Unknown")) == NOW
    assert lifecycle.unknown_since(seed("False")) is None
    assert lifecycle.unknown_since({}) is None
    assert not lifecycle.is_reported({})
    assert lifecycle.is_reported({"status": {"conditions": [{"type": "ExtensionsReady"}]}})


@pytest.mark.parametrize(("workerless", "count"), [(False, 5), (True, 4)])
def test_shoots_of_a_lost_seed(workerless: bool, count: int) -> None:
    shoot = garden_object(SHOOTS)
    if workerless:
        del shoot["spec"]["provider"]["workers"]
    shoot["status"] = {
        "technicalID": "x",
        "conditions": [{"type": "Own", "status": "True"}, {"type": "APIServerAvailable", "status": "True"}],
        "constraints": [{"type": "Own", "status": "True"}],
    }
    assert not lifecycle.is_abandoned(shoot, now=NOW)
    status = lifecycle.abandoned(shoot, shoot["status"], now=NOW)
    assert status["technicalID"] == "x"
    assert [each["type"] for each in status["conditions"]][:2] == ["Own", "APIServerAvailable"]
    assert [each["status"] for each in status["conditions"]] == ["True", *["Unknown"] * count]
    assert [each["status"] for each in status["constraints"]] == ["True", "Unknown", "Unknown"]
    assert lifecycle.is_abandoned({**shoot, "status": status}, now=NOW + timedelta(hours=1))


# --- Secrets


def secret(namespace: str = "garden", **fields: Any) -> Object:
    meta = {
        "name": "s",
        "namespace": namespace,
        "uid": "1",
        "labels": {"gardener.cloud/role": "r"},
        "finalizers": ["f"],
    }
    return {"metadata": meta, "type": "Opaque", "data": {"k": "dg=="}, **fields}


def kept(obj: Object) -> GardenSecret:
    found = GardenSecret.of(obj)
    assert found is not None
    return found


def test_a_copy_is_equal_to_its_source() -> None:
    source = kept(secret(immutable=True))
    copied = copy_of(source, "seed-a")
    assert copied["metadata"]["namespace"] == "seed-a"
    assert kept(copied).digest == source.digest
    assert kept(copied).content is None
    assert GardenSecret.of(secret("garden-project")) is None
    assert "dg==" not in repr(source)


@pytest.mark.parametrize(
    "change", [{"data": {"k": "eA=="}}, {"type": "x"}, {"immutable": True}, {"metadata": {"namespace": "garden"}}]
)
def test_a_difference_is_seen(change: Object) -> None:
    assert kept(secret()).digest != kept(secret(**change)).digest


@pytest.mark.parametrize(
    ("present", "source", "expected"),
    [
        ({}, {}, False),
        ({"data": {}}, {}, False),
        ({"type": "x"}, {}, True),
        ({"immutable": True}, {"immutable": True}, False),
        ({"immutable": True}, {}, True),
        ({"immutable": True, "data": {}}, {"immutable": True}, True),
        ({}, {"immutable": True}, False),
    ],
)
def test_what_the_api_server_would_not_change(present: Object, source: Object, expected: bool) -> None:
    there, wanted = secret("seed-a", **present), copy_of(kept(secret(**source)), "seed-a")
    assert has_to_be_made_anew(there, wanted) is expected
    if not expected:
        there = with_value(there, ("metadata", "resourceVersion"), "9")
        result = updated(there, wanted)
        assert kept(result).digest == kept(secret(**source)).digest
        assert mapping(at(result, "metadata")).items() >= {"resourceVersion": "9", "finalizers": ["f"]}.items()


@pytest.mark.parametrize(
    ("scheduled", "present", "responsible"),
    [
        (None, None, ""),
        (None, "a", ""),
        ("", "a", ""),
        ("a", None, "a"),
        ("a", "", "a"),
        ("a", "a", "a"),
        ("b", "a", "a"),
    ],
)
def test_the_seed_that_a_shoot_leaves_is_responsible(scheduled: Any, present: Any, responsible: str) -> None:
    assert responsible_seed({"spec": {"seedName": scheduled}, "status": {"seedName": present}}) == responsible
