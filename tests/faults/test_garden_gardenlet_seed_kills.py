"""kill -9 while a gardenlet reconciles a fresh Seed, and while it deletes one: the next process ends it as if undisturbed.

Garden and seed are two clusters, each behind a proxy; both proxies lead to the same death. A Seed is simulated at a time,
since a seed has things that there is one of. Deaths are sampled, since each takes seconds: at the first write of every second
sort, before and after it in turn; with CRASH_SWEEP=full of each sort, both ways, and at the last one, too.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

import pytest

from agent.gardenlet.seed.main import backup_bucket, required
from agent.gardenlet.seed.main.controller import declare
from devcluster.cluster import Cluster
from devcluster.testing.faults import Silence
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.garden import BACKUP_BUCKETS, CONTROLLER_INSTALLATIONS, SEEDS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_APPLIED
from kit.crash.sweep import FULL, Death, Killed, Moment, write_of
from kit.eventually import soon
from kit.garden import Garden
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context, local_fields
from kit.gardenlet_seeds import GARDEN, SeedPlace
from kit.granted_rights import Right
from kit.proxied import proxy_to
from kit.world import connected
from kube.errors import NotFound
from kube.objects import Object, condition, finalizers, labels, mapping, metadata, text, uid
from kube.paths import at
from kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, SECRETS, Resource

pytestmark = pytest.mark.timeout(600)

_HASH = re.compile(r"-[0-9a-f]{8}$")
_LEFT = "gardenlet-seed-finalised"
_MOST_WRITES = 12
"""More than undisturbed: of a pass that begins again."""


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


class Play:
    """A Seed that comes and goes."""

    def __init__(self, garden: Garden, cluster: Cluster, directory: Path) -> None:
        self.place = SeedPlace(garden, cluster)
        self.own = uid(self.place.seed)
        self.directory = directory

    # --- what is requested

    async def is_reconciled(self) -> bool:
        return self.place.operation.get("state") == "Succeeded"

    def delete(self) -> None:
        self.place.garden.delete(CONTROLLER_INSTALLATIONS, self.place.name)
        self.place.garden.delete(SEEDS, self.place.name)

    async def is_deleted(self) -> bool:
        return self.place.place.find(SEEDS, self.place.name) is None

    # --- lives

    async def lived(self, is_done: Callable[[], Awaitable[bool]], moment: Moment | None) -> list[Right]:
        """What was written in a life that ends at the moment, and in the next one."""
        if moment is None:
            return await self._life(is_done, None)
        written = await self._life(is_done, moment)
        return [*written, *await self._life(is_done, None)]

    async def _life(self, is_done: Callable[[], Awaitable[bool]], moment: Moment | None) -> list[Right]:
        garden, seed, death = self.place.garden.cluster, self.place.cluster, Death()
        if moment is not None:
            death.arm(moment)
        silence = Silence(carried_out=death.carries_out).name
        async with proxy_to(garden) as to_garden, proxy_to(seed) as to_seed:
            proxies = to_garden, to_seed
            for cluster, proxy, name in ((garden, to_garden, "garden"), (seed, to_seed, "seed")):
                proxy.rules = death
                proxy.write_kubeconfig(self.directory / name, token=cluster.token)

            def written() -> list[Right]:
                done = [e.request for p in proxies for e in [*p.log] if e.answer is not None and e.answer < 300]
                found = (write_of(request) for request in done)
                return [each for each in found if each is not None and each.resource != "events"]

            with suppress(Killed):
                async with (
                    connected(self.directory / "garden", "gardenlet/garden") as own_garden,
                    connected(self.directory / "seed", "gardenlet/seed") as own_seed,
                ):
                    config = gardenlet_config(self.place.name, **local_fields())
                    context = await gardenlet_context(garden=own_garden, seed=own_seed, config=config)
                    async with gardenlet_at_work(context, declare) as (loop,):

                        async def is_over() -> bool:
                            if any(proxy.injected[silence] for proxy in proxies):
                                return True
                            return bool(written()) and loop.queue.is_idle and await is_done()

                        await soon(is_over, "the end", state=lambda: self.place.operation)
                        if moment is not None:
                            assert death.at is not None, f"it did not come {moment}"
                            for proxy in proxies:
                                await proxy.pause()
                            raise Killed
            return written() if moment is None else [*written(), *([death.at] if death.at else [])]

    # --- the end state

    async def state(self) -> Object:
        """Without what differs from Seed to Seed; once what ManagedResources are made of has been applied, too."""
        await soon(lambda: all(map(_is_applied, self._listed(MANAGED_RESOURCES))), "the ManagedResources")
        found = {
            str(resource): Counter(map(self._name, self._listed(resource)))
            for resource in (SECRETS, CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, MANAGED_RESOURCES)
        }
        found["buckets"] = Counter(text(metadata(each)["name"]).replace(self.own, "$UID") for each in self._buckets())
        return found | self._status()

    def _status(self) -> Object:
        if (seed := self.place.place.find(SEEDS, self.place.name)) is None:
            return {}
        status = mapping(seed.get("status"))
        return {
            "finalizers": sorted(finalizers(seed)),
            "operation": [at(status, "lastOperation", each) for each in ("type", "state", "progress", "description")],
            "observed": status.get("observedGeneration") == metadata(seed)["generation"],
            "fields": sorted(status),
            "condition": (condition(seed, "GardenletReady") or {}).get("status"),
        }

    def _buckets(self) -> list[Object]:
        found = self.place.garden.cluster.api.get(BACKUP_BUCKETS.path())["items"]
        return [each for each in found if at(each, "spec", "seedName") == self.place.name]

    def _listed(self, resource: Resource) -> list[Object]:
        """Of the seed; none of a kind that is not served."""
        with suppress(NotFound):
            return list(self.place.cluster.api.get(resource.path())["items"])
        return []

    def _name(self, obj: Object) -> str:
        name = text(metadata(obj)["name"]).replace(self.place.name, "$SEED")
        return f"{metadata(obj).get('namespace', '')}/{_HASH.sub('-*', name)}"

    def authorities(self) -> list[str]:
        return [metadata(each)["name"] for each in self._listed(SECRETS) if labels(each).get("name") == "ca-seed"]

    def clean_up(self) -> None:
        """What a seed keeps goes, too: so the next one is a fresh one."""
        api, unlabelled = self.place.cluster.api, {"metadata": {"labels": {"role": None}}}
        with suppress(NotFound):
            api.delete(CONFIG_MAPS.path(namespace=GARDEN, name=_LEFT))
        for name in (GARDEN, "kube-system"):
            path = NAMESPACES.path(name=name)
            api.request("PATCH", path, unlabelled, content_type="application/merge-patch+json")
        self.place.remove()


def _is_applied(managed_resource: Object) -> bool:
    """No flow of a Seed waits for that."""
    applied = condition(managed_resource, RESOURCES_APPLIED) or {}
    observed = at(managed_resource, "status", "observedGeneration")
    return applied.get("status") == "True" and observed == metadata(managed_resource)["generation"]


def moments(writes: list[Right], *, first: int) -> list[Moment]:
    sorts = list(dict.fromkeys(writes))
    if not FULL:
        return [Moment(number=1, carried_out=n % 2 == 1, of=each) for n, each in enumerate(sorts[first::2])]
    counts = Counter(writes)
    return [
        Moment(number=number, carried_out=carried_out, of=each)
        for each in sorts
        for number in sorted({1, counts[each]})
        for carried_out in (False, True)
    ]


@pytest.mark.slow
async def test_a_seed_is_reconciled_and_deleted_wherever_that_ended(
    garden: Garden, seed_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (backup_bucket, required):
        monkeypatch.setattr(module, "_LOOK_SECONDS", 0.2)

    async def played(
        reconciling: Moment | None, deleting: Moment | None
    ) -> tuple[list[Right], list[Right], Object, Object]:
        play = Play(garden, seed_cluster, tmp_path)
        first = await play.lived(play.is_reconciled, reconciling)
        reconciled = await play.state()
        assert len(play.authorities()) == 1, reconciling
        await asyncio.to_thread(play.delete)
        last = await play.lived(play.is_deleted, deleting)
        deleted = await play.state()
        assert not play.authorities(), deleting
        play.clean_up()
        return first, last, reconciled, deleted

    with Play(garden, seed_cluster, tmp_path).place.resource_manager():
        reconciling, deleting, reconciled, deleted = await played(None, None)
        deaths = [*zip_longest(moments(reconciling, first=0), moments(deleting, first=1))]
        for one, other in deaths:
            again, gone, found, left = await played(one, other)
            assert found == reconciled, one
            assert left == deleted, other
            assert len(again) <= len(reconciling) + _MOST_WRITES, (one, again)
            assert len(gone) <= len(deleting) + _MOST_WRITES, (other, gone)
        print(f"{len(reconciling)} and {len(deleting)} writes, {len(deaths)} deaths in each")
