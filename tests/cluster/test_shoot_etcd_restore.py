"""An etcd of a Shoot that has lost its data, and backups of a Shoot that is deleted: real snapshots of real etcds.

One Shoot goes through all of it, in the order of the tests.
"""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from devcluster.api import Api
from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from devcluster.garden.seed import SHAPE_WITH_SHOOTS, SeedBox
from devcluster.testing.pytest_plugin import RunClusters
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.api.extensions import BACKUP_ENTRIES as SEED_ENTRIES
from gardener.api.garden import BACKUP_ENTRIES
from kit.eventually import eventually
from kit.meadow import NAMESPACE, PATH, SECONDS, SEED, TECHNICAL_ID, Meadow
from kube.errors import KubeError, NotFound
from kube.objects import Object, condition, metadata
from kube.paths import at
from kube.resources import CONFIG_MAPS, EVENTS, SECRETS
from localprovider.runner.backups import ASKED

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("shoot-etcd-restore")]

MAIN = ETCDS.path(namespace=TECHNICAL_ID, name="etcd-main")
LONG, SHORT = "1h0m0s", "2s"
GRACE_HOURS = 24


class Backed(Meadow):
    """Attributes: provider: the directory of the local provider."""

    def __init__(self, garden: Cluster, seed: Cluster) -> None:
        super().__init__(garden, seed)
        self.provider = seed.state / "provider"
        self.create()

    @property
    def data(self) -> Path:
        return self.provider / "shoots" / TECHNICAL_ID / "etcd-main" / "data"

    @property
    def buckets(self) -> Path:
        return self.garden.state / "buckets"

    def entry(self) -> Path:
        (found,) = self.buckets.glob(f"*/{TECHNICAL_ID}--*")
        return found

    def snapshots(self) -> list[Path]:
        return sorted((self.entry() / "etcd-main").glob("*.db.gz"))

    def etcd(self) -> Object:
        return self.seed.api.get(MAIN)

    def snapshot(self) -> Path:
        """One more, which is requested."""
        before = self.snapshots()
        # A name has its second.
        time.sleep(1.0)
        self.seed.api.patch(MAIN, {"metadata": {"annotations": {ASKED: "now"}}})
        eventually(lambda: ASKED not in metadata(self.etcd()).get("annotations", {}), "the snapshot", seconds=SECONDS)
        (made,) = set(self.snapshots()) - set(before)
        return made

    def lose(self) -> None:
        shutil.rmtree(self.data)

    def write(self, name: str) -> Object:
        body: Object = {**CONFIG_MAPS.type_meta, "metadata": {"name": name}}
        return self.cluster().create(CONFIG_MAPS.path(namespace="default"), body)

    def names(self) -> list[str]:
        found = self.cluster().get(CONFIG_MAPS.path(namespace="default"))["items"]
        return sorted(name for each in found if not (name := metadata(each)["name"]).startswith("kube-"))

    def until_names(self, *names: str) -> None:
        """The Shoot has these, and no others of the test."""
        eventually(
            lambda: self.names() == sorted(names) and self.is_ready(),
            f"the Shoot to have {names}",
            seconds=SECONDS,
            passing=(KubeError,),
            state=lambda: str(self.etcd().get("status")),
        )

    def is_ready(self) -> bool:
        return self.etcd()["status"].get("ready") is True and not self.etcd()["status"].get("lastError")

    def reported(self, reason: str) -> list[str]:
        """By Events about the etcd."""
        query = f"{EVENTS.path(namespace=TECHNICAL_ID)}?fieldSelector=involvedObject.name%3Detcd-main,reason%3D{reason}"
        return [each["message"] for each in self.seed.api.get(query)["items"]]

    def set_period(self, period: str) -> None:
        self.seed.api.patch(MAIN, {"spec": {"backup": {"deltaSnapshotPeriod": period}}})


@pytest.fixture(scope="module")
def meadow(devcluster_run: RunClusters) -> Iterator[Backed]:
    with Cluster(name=f"restore-{os.getpid()}") as garden:
        box = GardenBox(garden)
        box.install()
        box.add_demo_data()
        box.start_controllers()
        seed = garden.below(SEED, nodes=1, shape=SHAPE_WITH_SHOOTS).start()
        made = SeedBox(garden, seed, SEED, shoots=True)
        file = made.gardenlet.config_file
        config = orjson.loads(file.read_bytes())
        config["controllers"]["backupEntry"] = {"deletionGracePeriodHours": GRACE_HOURS}
        file.write_bytes(orjson.dumps(config))
        made.install()
        found = Backed(garden, seed)
        found.wait("Create")
        yield found


def test_snapshots_are_made_at_the_period(meadow: Backed) -> None:
    """So at most what was written in one is lost with the data."""
    good = condition(meadow.etcd(), "BackupReady") or {}
    assert good["status"] == "True"
    assert "written in 5m0s" in good["message"]
    meadow.set_period(SHORT)
    count = len(meadow.snapshots())
    eventually(lambda: len(meadow.snapshots()) >= count + 2, "two more snapshots", seconds=SECONDS)
    meadow.set_period(LONG)


def test_lost_data_come_back_from_the_newest_snapshot(meadow: Backed) -> None:
    meadow.write("kept")
    meadow.snapshot()
    late = meadow.write("late")
    meadow.lose()
    meadow.until_names("kept")
    (reported,) = meadow.reported("Restored")
    assert "what was written after that is lost" in reported
    # Who knows revisions of the lost one never takes what is older for new.
    assert int(metadata(meadow.write("after"))["resourceVersion"]) > int(metadata(late)["resourceVersion"])


def test_if_that_is_corrupt_they_come_from_the_one_before(meadow: Backed) -> None:
    meadow.snapshot()
    meadow.write("in-the-corrupt-one")
    corrupt = meadow.snapshot()
    whole = bytearray(corrupt.read_bytes())
    whole[len(whole) // 2] ^= 1
    corrupt.write_bytes(whole)
    meadow.lose()
    meadow.until_names("kept", "after")
    eventually(
        lambda: any("can't be used" in each for each in meadow.reported("Restored")), "the Event", seconds=SECONDS
    )
    corrupt.unlink()


def test_without_the_bucket_nothing_is_made_empty(meadow: Backed) -> None:
    meadow.snapshot()
    aside = meadow.buckets.with_name("aside")
    meadow.buckets.rename(aside)
    entry = SEED_ENTRIES.path(name=next(aside.glob(f"*/{TECHNICAL_ID}--*")).name)
    try:
        meadow.lose()
        eventually(
            lambda: (
                "its data are lost, and the backup bucket is unavailable"
                in str(meadow.etcd()["status"].get("lastError"))
            ),
            "what is reported",
            seconds=SECONDS,
        )
        # Nor by the controllers of buckets and entries.
        meadow.seed.api.patch(entry, {"metadata": {"annotations": {keys.OPERATION: keys.OPERATION_RECONCILE}}})
        reported = "the backup bucket is unavailable: directory"
        eventually(
            lambda: reported in str(at(meadow.seed.api.get(entry), "status", "lastError", "description")),
            "what the extension reports",
            seconds=SECONDS,
        )
        status = meadow.etcd()["status"]
        assert (status["ready"], (condition(meadow.etcd(), "BackupReady") or {})["status"]) == (False, "False")
        assert (meadow.data.exists(), meadow.buckets.exists()) == (False, False)
        assert not [each for each in meadow.processes() if each.endswith("/etcd")][1:], "only that of events runs"
    finally:
        aside.rename(meadow.buckets)
    meadow.until_names("kept", "after")
    eventually(
        lambda: at(meadow.seed.api.get(entry), "status", "lastOperation", "state") == "Succeeded",
        "the entry to be there again",
        seconds=SECONDS,
    )


def test_backups_of_a_deleted_shoot_are_kept_and_no_namesake_gets_them(meadow: Backed) -> None:
    meadow.snapshot()
    old, count = meadow.entry(), len(meadow.snapshots())
    meadow.change({"metadata": {"annotations": {keys.CONFIRM_DELETION: "true"}}})
    meadow.garden.api.delete(PATH)
    eventually(lambda: meadow.garden.api.raw("GET", PATH)[0] == 404, "the Shoot to go", seconds=SECONDS)
    entry = BACKUP_ENTRIES.path(namespace=NAMESPACE, name=old.name)
    scheduled = "Deletion of backup entry is scheduled for"
    eventually(
        lambda: str(at(meadow.garden.api.get(entry), "status", "lastOperation", "description")).startswith(scheduled),
        "the entry to be kept",
        seconds=SECONDS,
    )
    assert len(list((old / "etcd-main").glob("*.db.gz"))) == count
    meadow.create()
    meadow.wait("Create")
    assert meadow.names() == []
    (own,) = set(meadow.buckets.glob(f"*/{TECHNICAL_ID}--*")) - {old}
    assert [own.name in str(meadow.etcd()["spec"]["backup"]["store"]["prefix"]), len(list(own.iterdir()))] == [True, 1]
    secret = SECRETS.path(namespace=TECHNICAL_ID, name="etcd-backup")
    before = meadow.seed.api.get(secret)
    meadow.garden.api.patch(entry, {"metadata": {"annotations": {keys.FORCE_ENTRY_DELETION: "true"}}})
    eventually(lambda: gone(meadow.garden.api, entry), "the old entry to go", seconds=SECONDS)
    assert not old.exists()
    assert meadow.seed.api.get(secret) == before
    assert own.is_dir()


def gone(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except NotFound:
        return True
    return False
