"""What a gardenlet does with a BackupEntry, and for how long it keeps one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.gardenlet.extensions.backup_entry import rules
from agent.gardenlet.extensions.backups import error_of
from config.gardenlet.controllers import BackupEntry as Settings
from gardener.extension_contract import Trouble
from kube.objects import Key, Object

DELETED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def entry(
    *,
    spec: str = "own",
    status: str = "own",
    last: tuple[str, str] | None = None,
    requested: str = "",
    deleting: bool = False,
    name: str = "shoot--p--s--uid",
    annotations: dict[str, str] | None = None,
) -> Object:
    meta: dict[str, Any] = {"name": name, "namespace": "garden-p", "annotations": dict(annotations or {})}
    if requested:
        meta["annotations"]["gardener.cloud/operation"] = requested
    if deleting:
        meta["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    state: dict[str, Any] = {"seedName": status} if status else {}
    if last:
        state["lastOperation"] = {"type": last[0], "state": last[1]}
    return {"metadata": meta, "spec": {"seedName": spec, "bucketName": "b"}, "status": state}


@pytest.mark.parametrize(
    ("obj", "operation"),
    [
        (entry(), "Create"),
        (entry(status=""), "Create"),
        (entry(last=("Create", "Error")), "Create"),
        (entry(last=("Create", "Succeeded")), "Reconcile"),
        (entry(last=("Restore", "Processing")), "Restore"),
        (entry(requested="restore"), "Restore"),
        (entry(deleting=True), "Delete"),
        (entry(spec="other"), "Migrate"),
        (entry(spec="other", deleting=True), "Migrate"),
        (entry(status="other"), ""),
        (entry(spec="other", status=""), ""),
        (entry(last=("Migrate", "Processing")), "Restore"),
        (entry(status="", last=("Migrate", "Succeeded")), ""),
        (entry(status="", last=("Migrate", "Succeeded"), requested="reconcile"), ""),
        (entry(status="", last=("Migrate", "Succeeded"), requested="restore"), "Restore"),
    ],
)
def test_one_seed_acts_and_the_next_one_waits_until_it_is_requested(obj: Object, operation: str) -> None:
    assert rules.operation_on(obj, seed="own") == operation


@pytest.mark.parametrize(
    ("obj", "has_left"),
    [(entry(), False), (entry(spec="other"), False), (entry(status=""), False), (entry(status="other"), False)]
    + [(entry(spec="other", status=status), True) for status in ("", "other")],
)
def test_an_entry_has_left_as_soon_as_neither_spec_nor_status_name_the_seed(obj: Object, has_left: bool) -> None:
    assert rules.has_left(obj, seed="own") is has_left


@pytest.mark.parametrize(
    ("is_observed", "requested", "state", "kind", "has_answered"),
    [
        (True, "", "Succeeded", "Reconcile", True),
        (True, "reconcile", "Succeeded", "Reconcile", False),
        (False, "reconcile", "Succeeded", "Reconcile", True),
        (False, "reconcile", "Succeeded", "Create", False),
        (False, "reconcile", "Succeeded", "Restore", False),
        (False, "reconcile", "Processing", "Reconcile", False),
        (False, "restore", "Succeeded", "Reconcile", False),
        (False, "", "Processing", "Reconcile", False),
    ],
)
def test_only_who_requests_the_same_once_more_gets_the_former_answer(
    is_observed: bool, requested: str, state: str, kind: str, has_answered: bool
) -> None:
    of_garden: Object = {"metadata": {"generation": 2}, "status": {"observedGeneration": 2 if is_observed else 1}}
    annotations = {"gardener.cloud/operation": requested} if requested else {}
    extension: Object = {"metadata": {"annotations": annotations}, "status": {"lastOperation": {"state": state}}}
    assert rules.has_answered(of_garden, extension, kind) is has_answered


@pytest.mark.parametrize(
    ("settings", "obj", "hours"),
    [
        (Settings(), entry(deleting=True), 0),
        (Settings(deletion_grace_period_hours=-1), entry(deleting=True), 0),
        (Settings(deletion_grace_period_hours=48), entry(deleting=True), 48),
        (Settings(deletion_grace_period_hours=48), entry(deleting=True, name="source-shoot--p--s--uid"), 0),
        (
            Settings(deletion_grace_period_hours=48),
            entry(deleting=True, annotations={"backupentry.core.gardener.cloud/force-deletion": "true"}),
            0,
        ),
        (
            Settings(deletion_grace_period_hours=48, deletion_grace_period_shoot_purposes=("production",)),
            entry(deleting=True, annotations={"shoot.gardener.cloud/purpose": "production"}),
            48,
        ),
        (
            Settings(deletion_grace_period_hours=48, deletion_grace_period_shoot_purposes=("production",)),
            entry(deleting=True, annotations={"shoot.gardener.cloud/purpose": "testing"}),
            0,
        ),
        (
            Settings(deletion_grace_period_hours=48, deletion_grace_period_shoot_purposes=("production",)),
            entry(deleting=True),
            48,
        ),
    ],
)
def test_entries_of_deleted_shoots_are_kept_by_purpose(settings: Settings, obj: Object, hours: int) -> None:
    assert rules.deletion_time(obj, settings) == DELETED + timedelta(hours=hours)


def test_a_deletion_that_is_put_off_reports_until_when() -> None:
    assert rules.scheduled(DELETED) == "Deletion of backup entry is scheduled for 2026-01-02 03:04:05 +0000 UTC"


def bucket(**status: Any) -> Object:
    good = {"observedGeneration": 1, "lastOperation": {"state": "Succeeded"}}
    return {
        "metadata": {"generation": 1},
        "spec": {"secretRef": {"namespace": "n", "name": "s"}},
        "status": good | status,
    }


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        (
            bucket(lastError={"description": "broken"}),
            "error during reconciliation of associated BackupBucket: broken",
        ),
        (bucket(observedGeneration=0), "observed generation of associated BackupBucket outdated (0/1)"),
        (bucket(lastOperation=None), "associated BackupBucket did not record a last operation yet"),
        (
            bucket(lastOperation={"state": "Processing"}),
            "associated BackupBucket state is not Succeeded but Processing",
        ),
        (
            {**bucket(), "metadata": {"generation": 1, "annotations": {"gardener.cloud/operation": "reconcile"}}},
            'gardener operation "reconcile" of associated BackupBucket is not yet picked up by controller',
        ),
    ],
)
def test_an_entry_waits_for_its_bucket(obj: Object, problem: str) -> None:
    assert rules.bucket_trouble(obj) == Trouble(problem)


def test_an_entry_uses_a_bucket_that_is_ready() -> None:
    assert rules.bucket_trouble(bucket()) is None


def test_the_codes_of_a_bucket_are_passed_to_its_entries_in_their_order() -> None:
    codes = ["ERR_INFRA_UNAUTHORIZED", "ERR_CONFIGURATION_PROBLEM"]
    found = rules.bucket_trouble(bucket(lastError={"description": "broken", "codes": codes}))
    assert error_of(found or Trouble("")) == {
        "description": "error during reconciliation of associated BackupBucket: broken",
        "codes": codes,
    }


def test_credentials_made_for_the_bucket_alone_win() -> None:
    assert rules.credentials_of(bucket()) == Key("n", "s")
    assert rules.credentials_of(bucket(generatedSecretRef={"namespace": "g", "name": "t"})) == Key("g", "t")


def test_the_name_of_an_entry_is_that_of_its_shoot() -> None:
    assert rules.technical_id("shoot--p--s--uid") == rules.technical_id("source-shoot--p--s--uid") == "shoot--p--s"
