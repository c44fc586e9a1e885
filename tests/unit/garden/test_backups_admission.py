"""BackupBuckets and BackupEntries: labels, references, operations."""

import pytest

from gardener.api import garden as resources
from kit.objects import obj
from kit.webhooks.garden import Asked
from kube.objects import Object
from kube.resources import SECRETS
from webhooks.garden.kinds.backup_bucket import BACKUP_BUCKET
from webhooks.garden.kinds.backup_entry import BACKUP_ENTRY

LABEL = "provider.extensions.gardener.cloud/local"


def bucket(kind: str = "local", seed: str = "s", secret: str = "backup") -> Object:
    provider = {"type": kind, "region": "r"}
    spec = {"provider": provider, "seedName": seed, "secretRef": {"name": secret, "namespace": "garden"}}
    return obj(resources.BACKUP_BUCKETS, "b", spec=spec)


def entry(**spec: str) -> Object:
    return obj(resources.BACKUP_ENTRIES, "ns/e", spec={"bucketName": "b", "seedName": "s", **spec})


RESOURCES = [{"kind": kind, "type": "local"} for kind in ("BackupBucket", "BackupEntry")]
GARDEN = [
    obj(resources.SEEDS, "s"),
    obj(resources.SEEDS, "t"),
    obj(SECRETS, "garden/backup"),
    obj(resources.CONTROLLER_REGISTRATIONS, "local", spec={"resources": RESOURCES}),
    bucket(),
]


def test_a_bucket_has_the_label_of_its_provider() -> None:
    created = Asked(BACKUP_BUCKET, garden=GARDEN).create(bucket())
    assert created.status is None
    assert created.object["metadata"]["labels"] == {LABEL: "true"}


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (bucket("nope"), 'given BackupBucket uses non-registered provider type: spec.provider.type ("nope")'),
        (bucket(seed="nope"), 'seeds.core.gardener.cloud "nope" not found'),
        (bucket(secret="nope"), 'secrets "nope" not found'),
    ],
)
def test_what_a_bucket_needs(obj: Object, message: str) -> None:
    refused = Asked(BACKUP_BUCKET, garden=GARDEN).create(obj)
    assert refused.code == 403
    assert message in refused.message


def test_an_extension_that_is_not_primary_does_not_count() -> None:
    secondary = [{**each, "primary": False} for each in RESOURCES]
    garden = [*GARDEN[:3], obj(resources.CONTROLLER_REGISTRATIONS, "local", spec={"resources": secondary})]
    assert "non-registered" in Asked(BACKUP_BUCKET, garden=garden).create(bucket()).message


def test_a_bucket_with_entries_stays() -> None:
    refused = Asked(BACKUP_BUCKET, garden=[entry()]).delete(bucket())
    assert refused.code == 403
    assert refused.message.endswith("still referencing it, backupEntryNames: ns/e")
    assert Asked(BACKUP_BUCKET, garden=[entry(bucketName="other")]).delete(bucket()).code == 200


def test_an_entry_has_the_labels_of_its_provider_and_of_its_seeds() -> None:
    labels = Asked(BACKUP_ENTRY, garden=GARDEN).create(entry()).object["metadata"]["labels"]
    assert labels == {LABEL: "true", "seed.gardener.cloud/s": "true"}
    old = {**entry(), "status": {"seedName": "s"}}
    moved = Asked(BACKUP_ENTRY, garden=GARDEN).update(old, {**old, "spec": {"bucketName": "b", "seedName": "t"}})
    assert moved.object["metadata"]["labels"] == {
        LABEL: "true",
        "seed.gardener.cloud/s": "true",
        "seed.gardener.cloud/t": "true",
    }


def test_what_an_entry_needs() -> None:
    refused = Asked(BACKUP_ENTRY, garden=GARDEN).create(entry(bucketName="x", seedName="y"))
    assert refused.code == 403
    assert 'backupbuckets.core.gardener.cloud "x" not found' in refused.message
    assert 'seeds.core.gardener.cloud "y" not found' in refused.message


def annotated(obj: Object, **annotations: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "annotations": dict(annotations)}}


OPERATION, FORCE = "gardener.cloud/operation", "backupentry.core.gardener.cloud/force-deletion"


@pytest.mark.parametrize(
    ("before", "now", "kept", "counts"),
    [
        ({}, {OPERATION: "reconcile"}, {}, True),
        ({}, {OPERATION: "anything"}, {}, True),
        ({}, {OPERATION: "restore"}, {OPERATION: "restore"}, True),
        ({OPERATION: "restore"}, {OPERATION: "restore", "a": "b"}, {OPERATION: "restore", "a": "b"}, False),
        ({}, {FORCE: "true"}, {FORCE: "true"}, True),
        ({FORCE: "1"}, {FORCE: "true"}, {FORCE: "true"}, False),
        ({}, {"a": "b"}, {"a": "b"}, False),
    ],
)
def test_operations_of_entries(before: Object, now: Object, kept: Object, *, counts: bool) -> None:
    outcome = Asked(BACKUP_ENTRY, garden=GARDEN).update(annotated(entry(), **before), annotated(entry(), **now))
    assert outcome.object["metadata"].get("annotations", {}) == kept
    assert outcome.object.get("operation") == ({"sequence": 1} if counts else None)


def test_operations_of_buckets() -> None:
    outcome = Asked(BACKUP_BUCKET, garden=GARDEN).update(bucket(), annotated(bucket(), **{OPERATION: "reconcile"}))
    assert outcome.object["operation"] == {"sequence": 1}
    assert "annotations" not in outcome.object["metadata"]
