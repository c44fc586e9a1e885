"""Buckets, entries and bastions of a Seed, and an extension that a test plays. Garden and seed are one cluster.

place = MirrorPlace(garden)
async with place.gardenlet(declare):
    place.bucket()
    await place.asked(EXTENSION_BUCKETS, place.name)
    place.answer(EXTENSION_BUCKETS, place.name)
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from config.gardenlet.controllers import Controllers
from devcluster.audit import Call
from gardener import keys
from gardener.api.extensions import BACKUP_BUCKETS as EXTENSION_BUCKETS
from gardener.api.extensions import BACKUP_ENTRIES as EXTENSION_ENTRIES
from gardener.api.extensions import CLUSTERS
from gardener.api.garden import BACKUP_BUCKETS, BACKUP_ENTRIES, BASTIONS, SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import Declare, gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.proxied import QUICK
from kit.seed_kinds import install_seed_kinds
from kit.world import connected
from kube.clock import format_time, utc_now
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, annotations, finalizers, is_deleting, mapping, metadata
from kube.resources import NAMESPACES, SECRETS, Resource
from kube.runtime.loop import ControlLoop

GARDEN = "garden"
FINALIZER = "extensions.gardener.cloud/test"
SHOOT_UID = "11111111-2222-3333-4444-555555555555"


class MirrorPlace:
    def __init__(self, garden: Garden, *, shared: "MirrorPlace | None" = None) -> None:
        """Args: shared: whose Project and kinds this is another Seed of."""
        self.garden = garden
        self.place: ShootPlace = shared.place if shared else ShootPlace(garden)
        self.name = self.place.seed("-b" if shared else "")
        """Of the Seed, of its bucket and of the Secret with its credentials."""
        self.technical_id = f"shoot--{self.place.name}--s"
        self.entry_name = f"{self.technical_id}--{SHOOT_UID}"
        self._made: list[tuple[Resource, str, str]] = []
        if shared is None:
            install_seed_kinds(garden.cluster)
        for namespace in (GARDEN, self.technical_id):
            with suppress(AlreadyExists):
                garden.create(NAMESPACES, namespace)

    # --- the garden

    def bucket(self, **changes: Any) -> Object:
        self.create(SECRETS, self.name, namespace=GARDEN, stringData={"key": "value"})
        spec = {
            "provider": {"type": self.place.name, "region": "r"},
            "secretRef": {"name": self.name, "namespace": GARDEN},
            "seedName": self.name,
            **changes,
        }
        return self.create(BACKUP_BUCKETS, self.name, spec=spec)

    def ready_bucket(self) -> Object:
        """One that an extension has made some time ago, as far as entries see it."""
        generation = metadata(self.bucket())["generation"]
        status = {"lastOperation": _operation("Create", "Succeeded", utc_now()), "observedGeneration": generation}
        return self.garden.patch(BACKUP_BUCKETS, self.name, {"status": status}, status=True)

    def entry(self, name: str = "", **meta: Any) -> Object:
        """With the Cluster object of its Shoot."""
        with suppress(AlreadyExists):
            self.create(CLUSTERS, self.technical_id, spec={"cloudProfile": {}, "seed": {}, "shoot": {}})
        spec = {"bucketName": self.name, "seedName": self.name}
        return self.create(
            BACKUP_ENTRIES, name or self.entry_name, namespace=self.place.namespace, spec=spec, metadata=meta
        )

    def bastion(self, name: str = "b") -> Object:
        """For a Shoot that has its namespace in the seed."""
        self.place.shoot("s", seedName=self.name)
        gardener = {"id": "i", "name": "n", "version": "v0.0.0"}
        status = {"technicalID": self.technical_id, "uid": SHOOT_UID, "seedName": self.name, "gardener": gardener}
        self.place.patch(SHOOTS, "s", {"status": status}, status=True)
        spec = garden_object(BASTIONS)["spec"] | {"shootRef": {"name": "s"}}
        return self.create(BASTIONS, name, namespace=self.place.namespace, spec=spec)

    def create(self, resource: Resource, name: str, *, namespace: str = "", **fields: Any) -> Object:
        made = self.garden.create(resource, name, namespace=namespace, **fields)
        self._made.append((resource, name, namespace))
        return made

    def find(self, resource: Resource, name: str = "", *, namespace: str = "") -> Object | None:
        """In the garden and in the seed."""
        try:
            return self.garden.get(resource, name or self.name, namespace=namespace)
        except NotFound:
            return None

    def secret(self, name: str) -> Object | None:
        return self.find(SECRETS, name, namespace=GARDEN)

    def find_entry(self, name: str = "") -> Object | None:
        return self.find(BACKUP_ENTRIES, name or self.entry_name, namespace=self.place.namespace)

    def change_entry(self, body: Object, *, status: bool = False) -> Object:
        return self.garden.patch(BACKUP_ENTRIES, self.entry_name, body, namespace=self.place.namespace, status=status)

    def remove(self) -> None:
        kinds = [
            *((EXTENSION_BUCKETS, self.name, ""), (EXTENSION_ENTRIES, self.entry_name, "")),
            *(
                (SECRETS, f"{kind}-{name}", GARDEN)
                for kind, name in (("bucket", self.name), ("entry", self.entry_name))
            ),
            (SECRETS, f"generated-bucket-{self.name}", GARDEN),
        ]
        for resource, name, namespace in [*kinds, *reversed(self._made)]:
            with suppress(NotFound):
                if finalizers(self.garden.delete(resource, name, namespace=namespace)):
                    self.garden.patch(resource, name, {"metadata": {"finalizers": None}}, namespace=namespace)

    # --- the extension

    def answer(
        self,
        resource: Resource,
        name: str = "",
        *,
        namespace: str = "",
        operation: str = "Reconcile",
        state: str = "Succeeded",
        error: Object | None = None,
        at: datetime | None = None,
        is_operation_last: bool = False,
        **status: Any,
    ) -> Object:
        """It takes the operation away, before or after its reports: that it works, then the result."""
        picked_up = {"annotations": {keys.OPERATION: None}}
        meta = {"finalizers": [FINALIZER], **({} if is_operation_last else picked_up)}
        name = name or self.name
        live = self.garden.patch(resource, name, {"metadata": meta}, namespace=namespace)
        # As a clock that goes a little ahead: times are of seconds.
        moment, generation = at or utc_now() + timedelta(seconds=1), metadata(live)["generation"]
        for each, fields in (("Processing", {}), (state, {"lastError": error, **status})):
            reported = {
                "observedGeneration": generation,
                "lastOperation": _operation(operation, each, moment),
                **fields,
            }
            live = self.garden.patch(resource, name, {"status": reported}, namespace=namespace, status=True)
        if is_operation_last:
            live = self.garden.patch(resource, name, {"metadata": picked_up}, namespace=namespace)
        return live

    def let_go(self, resource: Resource, name: str = "", *, namespace: str = "") -> None:
        self.garden.patch(resource, name or self.name, {"metadata": {"finalizers": None}}, namespace=namespace)

    async def requested(
        self, resource: Resource, name: str = "", *, namespace: str = "", operation: str = "reconcile"
    ) -> Object:
        """The object, once an operation is requested of it."""

        def found() -> Object | None:
            live = self.find(resource, name, namespace=namespace)
            return live if live and annotations(live).get(keys.OPERATION) == operation else None

        return await soon(found, f"the extension to be requested to {operation}")  # type: ignore[no-any-return]

    async def deleting(self, resource: Resource, name: str = "", *, namespace: str = "") -> Object:
        def found() -> Object | None:
            live = self.find(resource, name, namespace=namespace)
            return live if live and is_deleting(live) else None

        return await soon(found, "the extension object to be deleted")  # type: ignore[no-any-return]

    # --- the gardenlet

    @asynccontextmanager
    async def gardenlet(
        self,
        *declared: Declare,
        clock: Callable[[], datetime] = utc_now,
        controllers: Controllers | None = None,
        garden: Path | None = None,
        seed: Path | None = None,
    ) -> AsyncIterator[list[ControlLoop]]:
        """In the garden, with the rights of the gardenlet of the Seed.

        Args: garden: a kubeconfig with other rights. seed: one of another way to the seed, on which watches fail.
        """
        async with (
            connected(garden or self.garden.gardenlet_kubeconfig(self.name), self.agent) as of_garden,
            connected(seed or self.garden.cluster, self.agent) as of_seed,
        ):
            config = gardenlet_config(self.name, controllers=controllers)
            timings = QUICK if seed else None
            context = await gardenlet_context(
                garden=of_garden, seed=of_seed, config=config, clock=clock, timings=timings
            )
            async with gardenlet_at_work(context, *declared) as loops:
                yield loops

    @property
    def agent(self) -> str:
        return f"gardenlet-of-{self.name}"

    def calls(self, audit: Any, since: int, *verbs: str) -> list[Call]:
        """Its own, without Events."""
        made: list[Call] = audit.calls(since=since, user_agent=self.agent, verbs=verbs)
        return [call for call in made if call.resource != "events"]


def _operation(kind: str, state: str, at: datetime) -> Object:
    reported = {"type": kind, "state": state, "progress": 100, "description": "d"}
    return {**reported, "lastUpdateTime": format_time(at)}


def last_state(obj: Object | None) -> tuple[str, str]:
    """Type and state of its last operation."""
    last = mapping(mapping((obj or {}).get("status")).get("lastOperation"))
    return last.get("type", ""), last.get("state", "")


async def until_state(find: Callable[[], Object | None], kind: str, state: str) -> Object:
    """The object, once its last operation is this one."""

    def found() -> Object | None:
        live = find()
        return live if live and last_state(live) == (kind, state) else None

    return await soon(found, f"{kind} to be {state}", state=lambda: last_state(find()))  # type: ignore[no-any-return]
