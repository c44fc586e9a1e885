"""A Shoot that moves between two Seeds, by gardenlets that die; see `kit.crash.shoot_lives`.

travel = Travel(places, directories, "play-1")
await travel.begins()
written = await travel.to(1, leaves=moment, arrives=moment)
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

from agent.gardenlet.extensions.backup_entry import controller as backups
from agent.gardenlet.shoot.care import controller as care
from agent.gardenlet.shoot.main import controller as shoot
from agent.gardenlet.shoot.state import controller as saver
from components.etcd import BACKUP_SECRET
from devcluster.testing.proxy import FaultProxy
from gardener.api.druid import ETCDS
from gardener.api.extensions import BACKUP_ENTRIES as ENTRIES
from gardener.api.extensions import CLUSTERS
from gardener.garden.shoots import is_current, last_operation
from kit.crash.shoot_lives import Play, Step
from kit.crash.sweep import Moment, write_of
from kit.eventually import soon
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context, local_fields
from kit.gardenlet_shoots import ShootsPlace, played_data
from kit.granted_rights import Right
from kit.proxied import QUICK, ImpatientClient, proxied
from kit.world import connected
from kube.errors import NotFound
from kube.objects import Key, Object, annotations, key, labels, metadata
from kube.resources import NAMESPACES, SECRETS
from kube.runtime.loop import ControlLoop
from localprovider.runner.backups import ASKED as SNAPSHOT
from localprovider.runner.places import Places


class Visit(Play):
    """The Shoot on one of the Seeds. Attributes: goal: type of the operation that is to come to its end there."""

    goal = ""

    def is_of_same(self, other: Self) -> None:
        self._uid = other._uid

    def is_done(self) -> bool:
        if not self.goal:
            return super().is_done()
        shoot = self.place.get(self.name)
        last = last_operation(shoot)
        # A new generation requests it from the next one; who comes after it has arrived reconciles it.
        is_ended = self.goal == "Migrate" or is_current(shoot)
        types = {"Restore", "Reconcile"} if self.goal == "Restore" else {self.goal}
        return is_ended and last.get("type") in types and last.get("state") == "Succeeded"

    async def has_snapshot(self) -> None:
        """Of its etcd."""
        path, api = ETCDS.path(namespace=self.technical_id, name="etcd-main"), self.place.cluster.api
        api.patch(path, {"metadata": {"annotations": {SNAPSHOT: "now"}}})
        await soon(lambda: SNAPSHOT not in annotations(api.get(path)), "a snapshot")

    def shown(self) -> Object:
        """Its last operation as extensions see it; empty: they do not see it at all."""
        try:
            shoot = self.place.cluster.api.get(CLUSTERS.path(name=self.technical_id))["spec"]["shoot"]
        except NotFound:
            return {}
        return last_operation(shoot)

    async def is_emptied(self) -> None:
        """Nothing of it is left there, as in a cluster that was recreated. Its backups are elsewhere."""
        api = self.place.cluster.api
        entries = [each for each in api.get(ENTRIES.path())["items"] if self.name in key(each).name]
        for path in (ENTRIES.path(name=key(each).name) for each in entries):
            api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path)
            api.delete(SECRETS.path(namespace="garden", name=f"entry-{path.rpartition('/')[2]}"))
        api.delete(NAMESPACES.path(name=self.technical_id))
        await soon(lambda: self.versions() == {}, "its objects to go")
        api.delete(CLUSTERS.path(name=self.technical_id))
        await soon(lambda: self.state()["seed"] == {}, "its namespace to go", state=self.state)

    def loses_backup_secret(self) -> None:
        with suppress(NotFound):
            self.place.cluster.api.delete(SECRETS.path(namespace=self.technical_id, name=BACKUP_SECRET))

    def versions(self) -> dict[str, str]:
        """Of all its objects there."""
        api, found = self.place.cluster.api, dict[str, str]()
        for kind in self.place.kinds:
            for each in api.get(kind.path(namespace=self.technical_id))["items"]:
                found[f"{kind.kind} {metadata(each)['name']}"] = metadata(each)["resourceVersion"]
        return found


@asynccontextmanager
async def gardenlet_behind_proxy(
    place: ShootsPlace, directory: Path
) -> AsyncIterator[tuple[FaultProxy, list[ControlLoop]]]:
    """All of it that writes about Shoots, with the rights to write all of them; the proxy is before the garden."""
    async with (
        proxied(place.garden.cluster, directory) as (proxy, transport),
        connected(place.cluster, "gardenlet") as seed,
    ):
        config = gardenlet_config(place.name, **local_fields())
        garden = ImpatientClient(transport, user_agent="gardenlet")
        context = await gardenlet_context(garden=garden, seed=seed, config=config, timings=QUICK)
        declared = (shoot.declare, care.declare, saver.declare, backups.declare)
        async with gardenlet_at_work(context, *declared) as loops:
            yield proxy, loops


def answers(proxy: FaultProxy, since: int, code: int) -> list[str]:
    """Paths of writes that were answered so, but of Events."""
    found = [each for each in list(proxy.log)[since:] if each.answer == code and write_of(each.request) is not None]
    return [each.request.path for each in found if not each.request.path.endswith("/events")]


class Travel:
    """Args: directories: of the providers of the places. name: of the Shoot."""

    def __init__(self, places: Sequence[ShootsPlace], directories: Sequence[Path], name: str) -> None:
        self.name, self.here = name, 0
        self.visits = [Visit(place, name) for place in places]
        self._places = [Places(each / "shoots") for each in directories]
        self._keys: dict[str, Object] = {}

    async def begins(self) -> None:
        first, second = self.visits
        first.ask(Step.CREATE)
        second.is_of_same(first)
        await first.lived()
        self._keys = self.keys()
        assert "ca" in self._keys

    async def to(
        self, there: int, *, leaves: Moment | None = None, arrives: Moment | None = None
    ) -> tuple[list[Right], list[Right]]:
        """It moves, with what is in its etcd. Returns what is written for it to leave, and to arrive.

        Args: leaves, arrives: when a gardenlet dies that does that.
        """
        source, target = self.visits[self.here], self.visits[there]
        data = f"written before it went to {target.place.name}".encode()
        self.write(data)
        source.place.change(self.name, {"spec": {"seedName": target.place.name}})
        source.goal, target.goal = "Migrate", "Restore"
        leaving = await source.lived(leaves)
        assert source.state()["seed"] == {}, "something is left where it was"
        arriving = await target.lived(arrives)
        self.here = there
        self.check(data)
        return leaving, arriving

    def write(self, data: bytes) -> None:
        """Into its etcd."""
        self._data(self.here).write_bytes(data)

    def check(self, data: bytes) -> None:
        """It is the cluster that it was. Args: data: that were in its etcd."""
        assert self._data(self.here).read_bytes() == data, "what etcd had did not come along"
        assert self.keys() == self._keys, "clients that knew the cluster do not know it any more"
        self.visits[self.here].check_published()

    async def loses_all(self) -> None:
        """Where it is, all but its backups."""
        await self.visits[self.here].is_emptied()
        self._data(self.here).unlink(missing_ok=True)

    @property
    def deaths(self) -> int:
        return sum(each.deaths for each in self.visits)

    def state(self) -> Object:
        return self.visits[self.here].state()

    def keys(self) -> dict[str, Object]:
        """That have to be the same everywhere, by name; of each config there is one."""
        visit = self.visits[self.here]
        found = [each for each in visit.generated() if labels(each).get("persist") == "true"]
        assert len({labels(each)["name"] for each in found}) == len(found), "there are two of one sort"
        return {key(each).name: each["data"] for each in found}

    def _data(self, number: int) -> Path:
        """Of its etcd."""
        return played_data(self._places[number], Key(self.visits[number].technical_id, "etcd-main"))
