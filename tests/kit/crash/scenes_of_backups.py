"""Buckets, entries and bastions of a Seed, as scenes of `kit.crash.sweep`; the seed is the garden as well.

A simulated extension answers as soon as it is queried, and lets go as soon as it may.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any, ClassVar
from unittest.mock import patch

from agent.gardenlet.context import Context
from agent.gardenlet.extensions import bastion
from agent.gardenlet.extensions.backup_bucket import reconcile as bucket_reconcile
from agent.gardenlet.extensions.backup_bucket.controller import declare as buckets
from agent.gardenlet.extensions.backup_entry import reconcile as entry_reconcile
from agent.gardenlet.extensions.backup_entry.controller import declare as entries
from agent.gardenlet.extensions.bastion import declare as bastions
from devcluster.cluster import Cluster
from gardener import keys
from gardener.api.extensions import BACKUP_BUCKETS as EXTENSION_BUCKETS
from gardener.api.extensions import BACKUP_ENTRIES as EXTENSION_ENTRIES
from gardener.api.extensions import BASTIONS as EXTENSION_BASTIONS
from gardener.api.garden import BACKUP_BUCKETS, BACKUP_ENTRIES, BASTIONS
from kit.crash.sweep import Scene, comparable, crossing, scenes_of
from kit.garden import Garden
from kit.gardenlet_controllers import Declare, gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.gardenlet_mirrors import GARDEN, MirrorPlace, last_state
from kube.errors import Conflict, NotFound
from kube.objects import Object, annotations, condition, finalizers, is_deleting, labels
from kube.resources import SECRETS, Resource
from kube.runtime.client import Client

_TYPES = {"reconcile": "Reconcile", "migrate": "Migrate", "restore": "Restore"}
_LOOK_SECONDS = 0.05


class MirrorScene(Scene):
    declare: ClassVar[Declare]
    spare = 3
    """What was requested is requested again, a deletion is confirmed once more, and what goes on is reported to begin again."""
    longest_back_off = 0.2
    everywhere = True
    extension: ClassVar[Resource]

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.mirror = MirrorPlace(Garden(cluster))
        self.mark = self.mirror.name
        self.played_names = [self.mark]
        """Of the extension objects."""
        self.where = ""
        self.requested = set[str]()
        """What the extension has answered."""
        self.playing = asyncio.create_task(self._play())

    async def prepare(self) -> None:
        pass

    @asynccontextmanager
    async def at_work(self, client: Client) -> AsyncIterator[Callable[[], bool]]:
        context = await gardenlet_context(garden=client, seed=client, config=gardenlet_config(self.mark))
        with ExitStack() as soon:
            for module in (bucket_reconcile, entry_reconcile, bastion):
                soon.enter_context(patch.object(module, "_GOES_SECONDS", self.longest_back_off))
            async with self._running(context) as is_idle:
                yield is_idle

    @asynccontextmanager
    async def _running(self, context: Context) -> AsyncIterator[Callable[[], bool]]:
        async with gardenlet_at_work(context, type(self).declare) as loops:
            for loop in loops:
                loop.queue._max_backoff = min(loop.queue._max_backoff, self.longest_back_off)
            yield lambda: all(loop.queue.is_idle for loop in loops) and self._is_played()

    def _is_played(self) -> bool:
        return not self.playing.done() or self.playing.result() is None

    async def clean_up(self) -> None:
        self.playing.cancel()
        self.mirror.remove()
        self.mirror.place.remove()

    def objects(self, *found: tuple[Resource, str, str]) -> dict[str, Any]:
        """What there is of these, without times."""
        return {
            f"{resource.kind} {name}".replace(self.mark, "$MARK"): comparable(live, self.mark)
            for resource, name, namespace in found
            if (live := self.mirror.find(resource, name, namespace=namespace)) is not None
        }

    async def _play(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for name in self.played_names:
                with suppress(NotFound, Conflict):
                    self._react(name)

    def _react(self, name: str) -> None:
        live = self.mirror.find(self.extension, name, namespace=self.where)
        if live is None:
            return
        requested = annotations(live).get(keys.OPERATION, "")
        if is_deleting(live):
            # The key to what is to be deleted is still there.
            secret = live.get("spec", {}).get("secretRef")
            assert secret is None or self.mirror.secret(secret["name"])
            self.mirror.let_go(self.extension, name, namespace=self.where)
        elif requested in _TYPES:
            self.requested.add(requested)
            self.mirror.answer(
                self.extension, name, namespace=self.where, operation=_TYPES[requested], **self.answered()
            )

    def answered(self) -> Object:
        """Of the status."""
        return {}


class BucketComes(MirrorScene):
    """With credentials of its own."""

    declare, extension = buckets, EXTENSION_BUCKETS
    crosses = crossing(
        "patch backupbuckets.core.gardener.cloud backupbuckets/status.core.gardener.cloud secrets",
        "create secrets backupbuckets.extensions.gardener.cloud",
    )

    async def prepare(self) -> None:
        self.mirror.create(SECRETS, f"source-{self.mark}", namespace=GARDEN, stringData={"key": "generated"})
        self.mirror.bucket()

    def answered(self) -> Object:
        return {"generatedSecretRef": {"name": f"source-{self.mark}", "namespace": GARDEN}}

    def all(self) -> dict[str, Any]:
        secrets = (self.mark, f"bucket-{self.mark}", f"generated-bucket-{self.mark}", f"source-{self.mark}")
        of_garden, of_seed = (BACKUP_BUCKETS, self.mark, ""), (EXTENSION_BUCKETS, self.mark, "")
        return self.objects(of_garden, of_seed, *((SECRETS, name, GARDEN) for name in secrets))

    async def problem(self) -> str:
        kind, state = last_state(self.mirror.find(BACKUP_BUCKETS))
        return "" if state == "Succeeded" else f"it is {kind} {state}"

    async def state(self) -> Any:
        found = self.all()
        # A process that starts again has nothing to create.
        for each in found.values():
            each.get("status", {}).get("lastOperation", {}).pop("type", None)
        return found


class BucketGoes(BucketComes):
    warm = True
    crosses = crossing(
        "patch backupbuckets.core.gardener.cloud backupbuckets/status.core.gardener.cloud secrets",
        "patch backupbuckets.extensions.gardener.cloud",
        "delete secrets backupbuckets.extensions.gardener.cloud",
    )
    is_leaving = False

    async def change(self) -> None:
        self.is_leaving = True
        self.mirror.garden.delete(BACKUP_BUCKETS, self.mark)

    async def problem(self) -> str:
        if not self.is_leaving:
            return await super().problem()
        return "it is there" if self.mirror.find(BACKUP_BUCKETS) else ""


class EntryComes(MirrorScene):
    declare, extension = entries, EXTENSION_ENTRIES
    crosses = crossing(
        "patch backupentries.core.gardener.cloud backupentries/status.core.gardener.cloud",
        "create secrets backupentries.extensions.gardener.cloud",
    )

    async def prepare(self) -> None:
        self.played_names = [self.mirror.entry_name]
        self.mirror.ready_bucket()
        self.mirror.entry()

    async def problem(self) -> str:
        kind, state = last_state(self.mirror.find_entry())
        return "" if state == "Succeeded" else f"it is {kind} {state}"

    async def state(self) -> Any:
        name = self.mirror.entry_name
        entry = self.mirror.find_entry()
        found = self.objects((EXTENSION_ENTRIES, name, ""), (SECRETS, f"entry-{name}", GARDEN))
        status = (entry or {}).get("status", {})
        return found, entry and (finalizers(entry), annotations(entry), "seedName" in status, self.kind(entry))

    def kind(self, entry: Object) -> str:
        """Of operation, if that does not depend on who died."""
        return ""


class EntryGoes(EntryComes):
    warm = True
    crosses = crossing(
        "patch backupentries.core.gardener.cloud backupentries/status.core.gardener.cloud",
        "patch backupentries.extensions.gardener.cloud",
        "delete secrets backupentries.extensions.gardener.cloud",
    )
    is_leaving = False

    async def change(self) -> None:
        self.is_leaving = True
        place = self.mirror
        place.garden.delete(BACKUP_ENTRIES, place.entry_name, namespace=place.place.namespace)

    async def problem(self) -> str:
        if not self.is_leaving:
            return await super().problem()
        return "it is there" if self.mirror.find_entry() else ""


class EntryLeaves(EntryComes):
    """For another Seed."""

    warm = True
    crosses = crossing(
        "patch backupentries.core.gardener.cloud backupentries/status.core.gardener.cloud",
        "patch backupentries.extensions.gardener.cloud",
        "delete secrets backupentries.extensions.gardener.cloud",
    )
    is_leaving = False

    async def change(self) -> None:
        self.is_leaving = True
        other = self.mirror.place.seed("-b")
        self.mirror.change_entry({"spec": {"seedName": other}})

    async def problem(self) -> str:
        if not self.is_leaving:
            return await super().problem()
        entry = self.mirror.find_entry() or {}
        if last_state(entry) != ("Migrate", "Succeeded"):
            return f"it is {last_state(entry)}"
        own = f"{keys.SEED_LABEL_PREFIX}{self.mark}"
        return f"it has the label {own}" if own in labels(entry) else ""

    def kind(self, entry: Object) -> str:
        return last_state(entry)[0]


class EntryIsRestored(EntryComes):
    """Nothing else is requested of its extension, whichever process dies."""

    crosses = crossing(
        "patch backupentries.core.gardener.cloud backupentries/status.core.gardener.cloud",
        "create secrets backupentries.extensions.gardener.cloud",
        "patch backupentries.extensions.gardener.cloud",
    )

    async def prepare(self) -> None:
        await super().prepare()
        self.mirror.change_entry({"metadata": {"annotations": {keys.OPERATION: keys.OPERATION_RESTORE}}})

    async def problem(self) -> str:
        entry = self.mirror.find_entry() or {}
        if last_state(entry)[1] != "Succeeded":
            return f"it is {last_state(entry)}"
        return "it is still requested" if keys.OPERATION in annotations(entry) else ""

    def kind(self, entry: Object) -> str:
        return ", ".join(sorted(self.requested))


class BastionComes(MirrorScene):
    declare, extension = bastions, EXTENSION_BASTIONS
    crosses = crossing(
        "patch bastions.operations.gardener.cloud bastions/status.operations.gardener.cloud",
        "create bastions.extensions.gardener.cloud",
    )

    async def prepare(self) -> None:
        self.played_names, self.where = ["b"], self.mirror.technical_id
        self.mirror.bastion()

    def answered(self) -> Object:
        return {"ingress": {"ip": "10.0.0.1"}}

    def found(self) -> Object | None:
        return self.mirror.find(BASTIONS, "b", namespace=self.mirror.place.namespace)

    async def problem(self) -> str:
        reported = (condition(self.found() or {}, "BastionReady") or {}).get("status")
        return "" if reported == "True" else f"it is ready: {reported}"

    async def state(self) -> Any:
        own = (BASTIONS, "b", self.mirror.place.namespace)
        return self.objects(own, (EXTENSION_BASTIONS, "b", self.where))


class BastionGoes(BastionComes):
    warm = True
    crosses = crossing(
        "patch bastions.operations.gardener.cloud bastions/status.operations.gardener.cloud",
        "delete bastions.extensions.gardener.cloud",
    )
    is_leaving = False

    async def change(self) -> None:
        self.is_leaving = True
        self.mirror.garden.delete(BASTIONS, "b", namespace=self.mirror.place.namespace)

    async def problem(self) -> str:
        if not self.is_leaving:
            return await super().problem()
        return "it is there" if self.found() else ""


SCENES = scenes_of(__name__)
