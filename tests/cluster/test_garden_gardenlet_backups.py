"""BackupBuckets and BackupEntries of a Seed, with a simulated extension: well, badly, and late."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.gardenlet.common.extension_objects.kinds import BACKUP_BUCKET
from agent.gardenlet.common.extension_objects.mirroring import manifest
from agent.gardenlet.common.extension_objects.objects import ExtensionObjects
from agent.gardenlet.common.extension_objects.questions import Question
from agent.gardenlet.extensions.backup_bucket import reconcile as bucket_reconcile
from agent.gardenlet.extensions.backup_bucket.controller import declare as buckets
from agent.gardenlet.extensions.backup_entry import reconcile as entry_reconcile
from agent.gardenlet.extensions.backup_entry.controller import declare as entries
from agent.gardenlet.extensions.backups import Credentials
from agent.gardenlet.shoot.main.tasks import backup
from components import shoot_backup_entry
from config.gardenlet.controllers import BackupEntry, Controllers
from devcluster.testing.faults import Rule, WatchEnd, unavailable
from gardener import keys
from gardener.api.extensions import BACKUP_BUCKETS as EXTENSION_BUCKETS
from gardener.api.extensions import BACKUP_ENTRIES as EXTENSION_ENTRIES
from gardener.api.garden import BACKUP_BUCKETS, BACKUP_ENTRIES, SEEDS
from kit.controllers import cluster_of
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import looked_at, until_synced
from kit.gardenlet_mirrors import GARDEN, SHOOT_UID, MirrorPlace, last_state, until_state
from kit.objects import encoded
from kit.proxied import proxied
from kit.shoot_components import bare_operation
from kit.world import WRITES, connected
from kube.clock import utc_now
from kube.objects import Key, Object, annotations, finalizers, is_deleting, mapping, metadata, resource_version, uid
from kube.paths import at
from kube.resources import SECRETS
from kube.runtime.cache import Caches
from kube.runtime.discovery import Discovery
from kube.runtime.events import EventRecorder
from kube.runtime.waiting import Waiting

pytestmark = pytest.mark.timeout(600)

ERROR = {"description": "cloud: AccessDenied", "codes": ["ERR_INFRA_UNAUTHORIZED"]}
GRACE = timedelta(hours=48)


@pytest.fixture
def place(garden: Garden, monkeypatch: pytest.MonkeyPatch) -> Iterator[MirrorPlace]:
    """What is waited for is looked at soon again."""
    for module in (bucket_reconcile, entry_reconcile):
        monkeypatch.setattr(module, "_GOES_SECONDS", 0.2)
    place = MirrorPlace(garden)
    yield place
    place.remove()
    place.place.remove()


def generated_name(place: MirrorPlace) -> str:
    return f"generated-bucket-{place.name}"


async def made(place: MirrorPlace, **status: Any) -> Object:
    """The bucket, once its extension has made it."""
    await place.requested(EXTENSION_BUCKETS)
    place.answer(EXTENSION_BUCKETS, **status)
    return await until_state(partial(place.find, BACKUP_BUCKETS), "Create", "Succeeded")


async def made_entry(place: MirrorPlace) -> Object:
    await place.requested(EXTENSION_ENTRIES, place.entry_name)
    place.answer(EXTENSION_ENTRIES, place.entry_name)
    return await until_state(place.find_entry, "Create", "Succeeded")


async def gone(place: MirrorPlace, find: partial[Object | None]) -> None:
    await soon(lambda: find() is None, "it to be gone")


# --- buckets


async def test_a_bucket_is_made_and_then_left_alone(place: MirrorPlace) -> None:
    place.create(SECRETS, f"source-{place.name}", namespace=GARDEN, stringData={"key": "generated"})
    audit = place.garden.cluster.audit()
    async with place.gardenlet(buckets) as (loop,):
        place.bucket()
        source = {"name": f"source-{place.name}", "namespace": GARDEN}
        bucket = await made(place, generatedSecretRef=source, providerStatus={"id": "7"})
        assert bucket["status"]["providerStatus"] == {"id": "7"}
        generated = place.secret(generated_name(place))
        assert generated
        assert generated["data"] == encoded({"key": "generated"})
        assert metadata(generated)["finalizers"] == [keys.GENERATED_SECRET_FINALIZER]
        assert metadata(generated)["ownerReferences"][0]["uid"] == uid(bucket)
        await looked_at(loop, BACKUP_BUCKETS, bucket)
        since = audit.mark()
        # What requests no work brings no pass.
        touched = place.garden.patch(BACKUP_BUCKETS, place.name, {"metadata": {"labels": {"seen": "1"}}})
        await looked_at(loop, BACKUP_BUCKETS, touched)
        place.garden.patch(EXTENSION_BUCKETS, place.name, {"metadata": {"labels": {"seen": "1"}}})
        assert place.calls(audit, since) == []
    # The first pass of another process reports that it has nothing to create.
    for writes in (["backupbuckets/status"], []):
        since = audit.mark()
        async with place.gardenlet(buckets) as (loop,):
            await looked_at(loop, BACKUP_BUCKETS, touched)
        assert [call.resource for call in place.calls(audit, since, *WRITES)] == writes
    audit.close()


async def test_the_credentials_go_after_the_bucket(place: MirrorPlace) -> None:
    place.create(SECRETS, f"source-{place.name}", namespace=GARDEN, stringData={"key": "generated"})
    async with place.gardenlet(buckets):
        place.bucket()
        await made(place, generatedSecretRef={"name": f"source-{place.name}", "namespace": GARDEN})
        place.garden.delete(BACKUP_BUCKETS, place.name)
        leaving = await place.deleting(EXTENSION_BUCKETS)
        assert annotations(leaving)[keys.CONFIRM_DELETION] == "true"
        place.answer(EXTENSION_BUCKETS, operation="Delete", state="Error", error=ERROR)
        failed = await until_state(partial(place.find, BACKUP_BUCKETS), "Delete", "Error")
        assert "AccessDenied Operation will be retried." in failed["status"]["lastOperation"]["description"]
        for name in (place.name, f"bucket-{place.name}", generated_name(place)):
            kept = place.secret(name)
            assert kept
            assert not is_deleting(kept), name
        # The extension needs the newest credentials even now.
        place.garden.patch(SECRETS, place.name, {"stringData": {"key": "renewed"}}, namespace=GARDEN)

        def renewed() -> bool:
            return mapping((place.secret(f"bucket-{place.name}") or {}).get("data")) == encoded({"key": "renewed"})

        await soon(renewed, "the copy to be renewed")
        place.let_go(EXTENSION_BUCKETS)
        await gone(place, partial(place.find, BACKUP_BUCKETS))
    assert place.secret(f"bucket-{place.name}") is None
    assert place.secret(generated_name(place)) is None
    assert finalizers(place.secret(place.name) or {}) == []


async def test_credentials_are_not_copied_again_for_what_is_gone(place: MirrorPlace) -> None:
    """As who goes on after a process that ended just before it released bucket and entry."""
    place.ready_bucket()
    place.entry(finalizers=[keys.GARDENER_FINALIZER])
    place.garden.patch(BACKUP_BUCKETS, place.name, {"metadata": {"finalizers": [keys.GARDENER_FINALIZER]}})
    place.garden.delete(BACKUP_ENTRIES, place.entry_name, namespace=place.place.namespace)
    with closing(place.garden.cluster.audit()) as audit:
        since = audit.mark()
        async with place.gardenlet(entries):
            await gone(place, partial(place.find_entry))
        place.garden.delete(BACKUP_BUCKETS, place.name)
        async with place.gardenlet(buckets):
            await gone(place, partial(place.find, BACKUP_BUCKETS))
        assert place.calls(audit, since, "create") == []


async def test_a_restored_shoot_does_not_wait_for_a_bucket_that_keeps_its_former_backups(
    place: MirrorPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "_SOURCE_SECONDS", 0.1)
    meta = {"name": "s", "namespace": place.place.namespace}
    shoot: Object = {"metadata": meta, "status": {"technicalID": place.technical_id, "uid": SHOOT_UID}}
    name = shoot_backup_entry.source_name(shoot)
    place.ready_bucket()
    place.entry(name, finalizers=[keys.GARDENER_FINALIZER])
    async with connected(place.garden.cluster, "gardenlet/test") as client:
        cluster = cluster_of(client)
        waiting = Waiting(client=client, caches=cluster.caches, discovery=cluster.discovery)
        operation = bare_operation(
            garden=cluster, seed=cluster, garden_waiting=waiting, technical_id=place.technical_id, shoot=shoot
        )
        await backup.destroy_source_entry(operation)
        assert is_deleting(place.find_entry(name) or {})


async def test_a_generated_secret_that_is_the_extensions_own_is_only_read(place: MirrorPlace) -> None:
    """Garden and seed are one cluster, and both names meet."""
    own = place.create(SECRETS, generated_name(place), namespace=GARDEN, stringData={"key": "generated"})
    async with place.gardenlet(buckets):
        place.bucket()
        reference = {"name": generated_name(place), "namespace": GARDEN}
        bucket = await made(place, generatedSecretRef=reference)
        assert bucket["status"]["generatedSecretRef"] == reference
        place.garden.delete(BACKUP_BUCKETS, place.name)
        await place.deleting(EXTENSION_BUCKETS)
        place.let_go(EXTENSION_BUCKETS)
        await gone(place, partial(place.find, BACKUP_BUCKETS))
    left = place.secret(generated_name(place))
    assert left
    assert resource_version(left) == resource_version(own)


async def test_a_secret_of_another_client_is_neither_overwritten_nor_used(place: MirrorPlace) -> None:
    foreign = place.create(SECRETS, generated_name(place), namespace=GARDEN, stringData={"key": "foreign"})
    place.create(SECRETS, f"source-{place.name}", namespace=GARDEN, stringData={"key": "generated"})
    async with place.gardenlet(buckets):
        place.bucket()
        await place.requested(EXTENSION_BUCKETS)
        place.answer(EXTENSION_BUCKETS, generatedSecretRef={"name": f"source-{place.name}", "namespace": GARDEN})
        failed = await until_state(partial(place.find, BACKUP_BUCKETS), "Create", "Error")
        assert generated_name(place) in failed["status"]["lastError"]["description"]
        assert "generatedSecretRef" not in failed["status"]
        assert resource_version(place.secret(generated_name(place)) or {}) == resource_version(foreign)
        place.garden.delete(SECRETS, generated_name(place), namespace=GARDEN)
        await until_state(partial(place.find, BACKUP_BUCKETS), "Create", "Succeeded")
        assert (place.secret(generated_name(place)) or {})["data"] == encoded({"key": "generated"})


async def test_credentials_are_kept_for_a_bucket_of_another_seed(place: MirrorPlace) -> None:
    """In a garden that lets gardenlets see all buckets."""
    async with place.gardenlet(buckets, garden=place.garden.cluster.kubeconfig):
        place.bucket()
        await made(place)
        secret = {"name": place.name, "namespace": GARDEN}
        provider = {"type": place.place.name, "region": "r"}
        other = place.place.seed("-b")
        place.create(BACKUP_BUCKETS, other, spec={"provider": provider, "secretRef": secret, "seedName": other})
        place.garden.delete(BACKUP_BUCKETS, place.name)
        await place.deleting(EXTENSION_BUCKETS)
        place.let_go(EXTENSION_BUCKETS)
        await gone(place, partial(place.find, BACKUP_BUCKETS))
    assert finalizers(place.secret(place.name) or {}) == [keys.CREDENTIALS_FINALIZER]


async def test_credentials_are_kept_for_a_seed_whose_bucket_is_not_to_be_seen(place: MirrorPlace) -> None:
    other = place.place.seed("-b")
    backup = {"provider": place.place.name, "secretRef": {"name": place.name, "namespace": GARDEN}}
    place.garden.patch(SEEDS, other, {"spec": {"backup": backup}})
    async with place.gardenlet(buckets):
        place.bucket()
        await made(place)
        place.garden.delete(BACKUP_BUCKETS, place.name)
        await place.deleting(EXTENSION_BUCKETS)
        place.let_go(EXTENSION_BUCKETS)
        await gone(place, partial(place.find, BACKUP_BUCKETS))
    assert finalizers(place.secret(place.name) or {}) == [keys.CREDENTIALS_FINALIZER]


async def test_a_changed_spec_is_requested_and_an_older_answer_is_none(place: MirrorPlace) -> None:
    async with place.gardenlet(buckets):
        place.bucket()
        await made(place)
        place.garden.patch(BACKUP_BUCKETS, place.name, {"spec": {"providerConfig": {"a": "b"}}})
        requested = await place.requested(EXTENSION_BUCKETS)
        assert requested["spec"]["providerConfig"] == {"a": "b"}
        # The extension took the question, and was ended: what stands there is its former answer.
        place.garden.patch(EXTENSION_BUCKETS, place.name, {"metadata": {"annotations": {keys.OPERATION: None}}})
        assert last_state(place.find(EXTENSION_BUCKETS)) == ("Reconcile", "Succeeded")
        assert last_state(place.find(BACKUP_BUCKETS)) == ("Reconcile", "Processing")
    async with place.gardenlet(buckets):
        again = await place.requested(EXTENSION_BUCKETS)
        assert annotations(again)[keys.TIMESTAMP] > annotations(requested)[keys.TIMESTAMP]
        place.answer(EXTENSION_BUCKETS)
        await until_state(partial(place.find, BACKUP_BUCKETS), "Reconcile", "Succeeded")


async def test_other_credentials_are_copied_and_requested(place: MirrorPlace) -> None:
    async with place.gardenlet(buckets):
        place.bucket()
        await made(place)
        place.garden.patch(SECRETS, place.name, {"stringData": {"key": "renewed"}}, namespace=GARDEN)
        place.garden.patch(BACKUP_BUCKETS, place.name, _asking("reconcile"))
        await place.requested(EXTENSION_BUCKETS)
        assert (place.secret(f"bucket-{place.name}") or {})["data"] == encoded({"key": "renewed"})
        place.answer(EXTENSION_BUCKETS)
        await until_state(partial(place.find, BACKUP_BUCKETS), "Reconcile", "Succeeded")


async def test_credentials_that_change_in_the_second_of_an_answer_are_requested(place: MirrorPlace) -> None:
    """Though the gardenlet is ended after it has copied them, or the extension after it has taken the question."""
    moment = datetime(2026, 1, 1, 12, 0, 0, 700_000, tzinfo=UTC)
    later, pauses = moment.replace(second=1, microsecond=0), list[float]()
    secret = {"name": f"bucket-{place.name}", "namespace": GARDEN}
    name = Key("", place.name)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async with connected(place.garden.cluster, place.agent) as client:
        waiting = Waiting(client=client, caches=Caches(client), discovery=Discovery(client))
        extensions = ExtensionObjects(client=client, waiting=waiting, clock=lambda: moment, sleep=sleep)
        credentials = Credentials(
            garden=client, seed=client, recorder=EventRecorder(client, component="test"), clock=lambda: moment
        )
        wanted = manifest(name, {"type": "t", "region": "r", "secretRef": secret})

        async def request(live: Object, **data: str) -> Question:
            copy = await credentials.copy(secret["name"], encoded(data), live)
            return Question(
                kind=BACKUP_BUCKET, manifest=wanted, is_demanded=copy.is_written, data_changed=copy.timestamp
            )

        async def is_to_be_asked(live: Object, **data: str) -> bool:
            return (await request(live, **data)).is_open(live)

        await extensions.send(await request({}, key="value"))
        live = place.answer(EXTENSION_BUCKETS, at=moment)
        assert not await is_to_be_asked(live, key="value")
        assert await is_to_be_asked(live, key="renewed")
        assert await is_to_be_asked(live, key="renewed"), "a pass that copies nothing any more"
        requested = await extensions.send(await request(live, key="renewed"), live=live)
        assert requested.timestamp == "2026-01-01T12:00:01.000000Z"
        assert pauses == [pytest.approx(0.3)]
        taken = place.garden.patch(EXTENSION_BUCKETS, place.name, {"metadata": {"annotations": {keys.OPERATION: None}}})
        assert await is_to_be_asked(taken, key="renewed")
        assert not await is_to_be_asked(place.answer(EXTENSION_BUCKETS, at=later), key="renewed")


async def test_an_extension_object_that_goes_is_followed_by_another(place: MirrorPlace) -> None:
    async with place.gardenlet(buckets):
        place.bucket()
        await made(place)
        former = place.garden.delete(EXTENSION_BUCKETS, place.name)
        place.garden.patch(BACKUP_BUCKETS, place.name, _asking("reconcile"))
        await until_state(partial(place.find, BACKUP_BUCKETS), "Reconcile", "Processing")
        assert keys.OPERATION not in annotations(place.find(EXTENSION_BUCKETS) or {})
        place.let_go(EXTENSION_BUCKETS)
        assert uid(await place.requested(EXTENSION_BUCKETS)) != uid(former)


# --- entries


async def test_an_entry_is_made_and_then_left_alone(place: MirrorPlace) -> None:
    audit = place.garden.cluster.audit()
    async with place.gardenlet(entries) as (loop,):
        place.ready_bucket()
        place.entry()
        entry = await made_entry(place)
        await looked_at(loop, BACKUP_ENTRIES, entry)
        since = audit.mark()
        touched = place.change_entry({"metadata": {"labels": {"seen": "1"}}})
        await looked_at(loop, BACKUP_ENTRIES, touched)
        assert place.calls(audit, since) == []
    # The first pass of another process reports that it has nothing to create.
    for writes in (["backupentries/status"], []):
        since = audit.mark()
        async with place.gardenlet(entries) as (loop,):
            await looked_at(loop, BACKUP_ENTRIES, touched)
        assert [call.resource for call in place.calls(audit, since, *WRITES)] == writes
    audit.close()


@pytest.mark.parametrize("late", [False, True], ids=["are listed late", "are watched late"])
async def test_an_answer_counts_though_the_cluster_object_is_seen_after_it(
    place: MirrorPlace, tmp_path: Path, late: bool
) -> None:
    hidden = [Rule(fault=unavailable(), path="/clusters$", watch=watch) for watch in (None, True)]
    async with proxied(place.garden.cluster, tmp_path) as (proxy, _):
        if not late:
            proxy.rules.add(*hidden)
        async with place.gardenlet(entries, seed=tmp_path / "kubeconfig") as (loop,):
            if late:
                await until_synced(loop)
                proxy.rules.add(*hidden)
                proxy.end_watches(WatchEnd.RESET, path="/clusters$")
            place.ready_bucket()
            place.entry()
            await place.requested(EXTENSION_ENTRIES, place.entry_name)
            answered = place.answer(EXTENSION_ENTRIES, place.entry_name)
            await looked_at(loop, EXTENSION_ENTRIES, answered)
            proxy.rules.clear()
            await until_state(place.find_entry, "Create", "Succeeded")


async def test_an_entry_waits_for_a_bucket_whatever_of_it_is_missing(place: MirrorPlace) -> None:
    async with place.gardenlet(entries):
        place.ready_bucket()
        status = {"observedGeneration": 0}
        place.garden.patch(BACKUP_BUCKETS, place.name, {"status": status}, status=True)
        place.entry()
        failed = await until_state(place.find_entry, "Create", "Error")
        assert "observed generation" in failed["status"]["lastError"]["description"]
        # The last operation stays as it is.
        status = {"observedGeneration": metadata(place.find(BACKUP_BUCKETS) or {})["generation"]}
        place.garden.patch(BACKUP_BUCKETS, place.name, {"status": status}, status=True)
        await made_entry(place)


async def test_what_an_entry_takes_from_its_bucket_is_passed_on(place: MirrorPlace) -> None:
    async with place.gardenlet(entries):
        place.ready_bucket()
        place.entry()
        await made_entry(place)
        status = {"providerStatus": {"id": "7"}}
        place.garden.patch(BACKUP_BUCKETS, place.name, {"status": status}, status=True)
        requested = await place.requested(EXTENSION_ENTRIES, place.entry_name)
        assert requested["spec"]["backupBucketProviderStatus"] == {"id": "7"}
        assert last_state(place.find_entry()) == ("Reconcile", "Processing")
        # It is about to be done, so who requests the same has the former answer until then.
        place.change_entry(_asking("reconcile"))
        await until_state(place.find_entry, "Reconcile", "Succeeded")
        place.answer(EXTENSION_ENTRIES, place.entry_name, state="Error", error=ERROR)
        await until_state(place.find_entry, "Reconcile", "Error")


async def test_an_entry_of_a_deleted_shoot_is_kept_and_its_namesake_left_alone(place: MirrorPlace) -> None:
    backup = place.create(SECRETS, "etcd-backup", namespace=place.technical_id, stringData={"key": "namesake"})
    async with place.gardenlet(entries, controllers=_with_grace()):
        place.ready_bucket()
        place.entry()
        await made_entry(place)
        namesake = f"{place.technical_id}--{SHOOT_UID[::-1]}"
        place.entry(namesake)
        await place.requested(EXTENSION_ENTRIES, namesake)
        place.garden.delete(BACKUP_ENTRIES, place.entry_name, namespace=place.place.namespace)
        pending = await until_state(place.find_entry, "Delete", "Pending")
        assert "is scheduled for" in pending["status"]["lastOperation"]["description"]
        assert not is_deleting(place.find(EXTENSION_ENTRIES, place.entry_name) or {})
        living = place.find(EXTENSION_ENTRIES, namesake)
    before_its_end, after = utc_now() + GRACE - timedelta(hours=1), utc_now() + GRACE
    async with place.gardenlet(entries, controllers=_with_grace(), clock=lambda: before_its_end) as (loop,):
        await looked_at(loop, BACKUP_ENTRIES, pending)
        assert not is_deleting(place.find(EXTENSION_ENTRIES, place.entry_name) or {})
    async with place.gardenlet(entries, controllers=_with_grace(), clock=lambda: after):
        leaving = await place.deleting(EXTENSION_ENTRIES, place.entry_name)
        assert annotations(leaving)[keys.CONFIRM_DELETION] == "true"
        assert place.secret(f"entry-{place.entry_name}")
        place.let_go(EXTENSION_ENTRIES, place.entry_name)
        await gone(place, partial(place.find_entry))
    assert place.secret(f"entry-{place.entry_name}") is None
    kept = place.find(SECRETS, "etcd-backup", namespace=place.technical_id)
    assert resource_version(kept or {}) == resource_version(backup)
    assert uid(place.find(EXTENSION_ENTRIES, namesake) or {}) == uid(living or {})
    assert place.secret(f"entry-{namesake}")
    place.garden.delete(EXTENSION_ENTRIES, namesake)
    place.garden.delete(SECRETS, f"entry-{namesake}", namespace=GARDEN)


async def test_a_copy_of_a_move_is_not_kept(place: MirrorPlace) -> None:
    source = f"source-{place.entry_name}"
    async with place.gardenlet(entries, controllers=_with_grace()):
        place.ready_bucket()
        place.entry(source)
        await place.requested(EXTENSION_ENTRIES, source)
        place.garden.delete(BACKUP_ENTRIES, source, namespace=place.place.namespace)
        await gone(place, partial(place.find_entry, source))
    assert place.find(EXTENSION_ENTRIES, source) is None
    assert place.secret(f"entry-{source}") is None


async def test_an_entry_moves_and_is_restored_when_it_is_requested(place: MirrorPlace) -> None:
    other = MirrorPlace(place.garden, shared=place)
    async with place.gardenlet(entries), other.gardenlet(entries) as (loop,):
        place.ready_bucket()
        other.ready_bucket()
        place.entry()
        await made_entry(place)
        place.change_entry({"spec": {"seedName": other.name}})
        await place.requested(EXTENSION_ENTRIES, place.entry_name, operation="migrate")
        place.answer(EXTENSION_ENTRIES, place.entry_name, operation="Migrate", is_operation_last=True)
        await place.deleting(EXTENSION_ENTRIES, place.entry_name)
        assert place.secret(f"entry-{place.entry_name}")
        place.let_go(EXTENSION_ENTRIES, place.entry_name)
        left = await until_state(place.find_entry, "Migrate", "Succeeded")
        assert "seedName" not in left["status"]
        assert place.secret(f"entry-{place.entry_name}") is None
        # Whatever happens to buckets, the next Seed waits until it is requested.
        await looked_at(loop, BACKUP_ENTRIES, left)
        for bucket in (place, other):
            status = {"lastOperation": {**_last(bucket), "description": "again"}}
            seen = place.garden.patch(BACKUP_BUCKETS, bucket.name, {"status": status}, status=True)
        await looked_at(loop, BACKUP_BUCKETS, seen)
        assert place.find(EXTENSION_ENTRIES, place.entry_name) is None
        place.change_entry({"spec": {"bucketName": other.name}} | _asking("restore"))
        await place.requested(EXTENSION_ENTRIES, place.entry_name, operation="restore")
        place.answer(EXTENSION_ENTRIES, place.entry_name, operation="Restore", is_operation_last=True)
        restored = await until_state(place.find_entry, "Restore", "Succeeded")
        assert restored["status"]["seedName"] == other.name

        def is_unasked() -> bool:
            return keys.OPERATION not in annotations(place.find_entry() or {})

        await soon(is_unasked, "the operation to be taken away")
    place.change_entry({"metadata": {"finalizers": None}})
    place.garden.delete(BACKUP_ENTRIES, place.entry_name, namespace=place.place.namespace)
    other.remove()


async def test_a_move_is_reported_though_the_extension_has_never_answered(place: MirrorPlace) -> None:
    other = place.place.seed("-b")
    async with place.gardenlet(entries):
        place.ready_bucket()
        place.entry()
        await place.requested(EXTENSION_ENTRIES, place.entry_name)
        place.change_entry({"spec": {"seedName": other}})
        await until_state(place.find_entry, "Migrate", "Processing")


async def test_an_entry_that_another_seed_lets_go_is_restored_though_it_was_requested_before(
    place: MirrorPlace,
) -> None:
    """The status alone changes then, and the annotation that requests it counts only once."""
    other = place.place.seed("-b")
    async with place.gardenlet(entries) as (loop,):
        place.ready_bucket()
        place.entry()
        await made_entry(place)
        place.change_entry({"status": {"seedName": other}}, status=True)
        requested = place.change_entry(_asking("restore"))
        await looked_at(loop, BACKUP_ENTRIES, requested)
        place.change_entry({"status": {"seedName": None}}, status=True)
        await place.requested(EXTENSION_ENTRIES, place.entry_name, operation="restore")


async def test_an_entry_that_leaves_and_comes_back_is_requested_at_once(place: MirrorPlace) -> None:
    async with place.gardenlet(entries) as (loop,):
        place.ready_bucket()
        place.entry()
        await made_entry(place)
        for _ in range(3):
            place.change_entry({"spec": {"seedName": None}})
            back = place.change_entry({"spec": {"seedName": place.name}})

            def is_observed(back: Object = back) -> bool:
                seen = at(place.find_entry() or {}, "status", "observedGeneration")
                return bool(seen == metadata(back)["generation"])

            await soon(is_observed, "it to be reconciled")
        left = place.change_entry({"spec": {"seedName": None}})
        await looked_at(loop, BACKUP_ENTRIES, left)


@pytest.mark.parametrize("late", [False, True], ids=["before the extension lets go", "while its object goes"])
async def test_a_move_that_is_taken_back_is_a_restoration(place: MirrorPlace, late: bool) -> None:
    other = place.place.seed("-b")
    async with place.gardenlet(entries):
        place.ready_bucket()
        place.entry()
        await made_entry(place)
        place.change_entry({"spec": {"seedName": other}})
        requested = await place.requested(EXTENSION_ENTRIES, place.entry_name, operation="migrate")
        if late:
            place.answer(EXTENSION_ENTRIES, place.entry_name, operation="Migrate")
            await place.deleting(EXTENSION_ENTRIES, place.entry_name)
        place.change_entry({"spec": {"seedName": place.name}, **_asking("migrate")})
        if late:
            await until_state(place.find_entry, "Restore", "Processing")
            place.let_go(EXTENSION_ENTRIES, place.entry_name)
        again = await place.requested(EXTENSION_ENTRIES, place.entry_name, operation="restore")
        assert (uid(again) != uid(requested)) == late
        place.answer(EXTENSION_ENTRIES, place.entry_name, operation="Restore")
        restored = await until_state(place.find_entry, "Restore", "Succeeded")
        assert restored["status"]["seedName"] == place.name


def _asking(operation: str) -> Object:
    return {"metadata": {"annotations": {keys.OPERATION: operation}}}


def _last(place: MirrorPlace) -> Object:
    return mapping(at(place.find(BACKUP_BUCKETS) or {}, "status", "lastOperation"))


def _with_grace() -> Controllers:
    return Controllers(backup_entry=BackupEntry(deletion_grace_period_hours=48))
