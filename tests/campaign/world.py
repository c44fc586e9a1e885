"""The users of both clusters: they write what the model states, however often that fails, and take snapshots.

What is written is remembered by digest, so that only changes are written. All goes to the API servers directly.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeVar

from campaign import manifests
from campaign.manifests import Input, Place, digest
from campaign.model import Edit, Model, apply_all, empty
from campaign.moves import Moves
from campaign.oracles import Snapshot
from devcluster.cluster import Cluster
from kit.kinds import definition
from kube.errors import AlreadyExists, Conflict, KindNotServed, KubeError, NotFound
from kube.objects import Key, Object, condition
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, DAEMON_SETS, NAMESPACES, PODS, SECRETS, TOKEN_REVIEWS
from kube.runtime.client import Client, Selection
from localprocesses.local import LocalProcessError

T = TypeVar("T")

_APPLY = "application/apply-patch+yaml"
_PAUSE_SECONDS = 0.3


class World:
    def __init__(self, clients: dict[str, Client]) -> None:
        self.clients = clients
        self.model: Model = empty()
        self.moves = Moves()
        self.failures: dict[str, int] = {}
        """How often users had to try again, by the error's kind."""
        self.last_failure = ""
        self._written: dict[Place, tuple[str, Input]] = {}
        self._news = asyncio.Event()
        self._done = asyncio.Event()

    # --- writing

    def edit(self, edits: Iterable[Edit]) -> None:
        before, self.model = self.model, apply_all(self.model, list(edits))
        self.moves.edit(before, self.model, now=time.time())
        self._news.set()
        self._done.clear()

    def write_anew(self) -> None:
        """Everything is written again, in case a user deleted it."""
        # What is not wanted any more is still to be deleted, so nothing is forgotten.
        self._written = {place: (known if each.once else "", each) for place, (known, each) in self._written.items()}
        self._news.set()
        self._done.clear()

    async def written(self) -> None:
        """Returns when all that is wanted was written."""
        await self._done.wait()

    async def write_on(self) -> None:
        """As long as it is not cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._write()
                await self._let_go()
            except (KubeError, TimeoutError) as error:
                self._count(error)
                self._news.set()
                await asyncio.sleep(_PAUSE_SECONDS)
            if not self._news.is_set():
                self._done.set()

    async def _write(self) -> None:
        wanted = manifests.inputs(self.moves.written(self.model))
        failure: KubeError | None = None
        is_referrer_missing = False
        for place, each in wanted.items():
            known = digest(each.obj)
            if place in self._written and (each.once or self._written[place][0] == known):
                continue
            if is_referrer_missing and not each.is_deleted:
                continue  # who refers is written before what is referred to
            try:
                await self._put(place, each)
            except KubeError as error:
                # One that can't be written does not keep the others waiting.
                failure = error
                is_referrer_missing |= place.resource in manifests.REFERRERS
                continue
            self._written[place] = known, each
        # Who uses something goes before what it uses.
        for place in sorted(self._written.keys() - wanted.keys(), key=lambda gone: gone.resource == SECRETS):
            if self._written[place][1].is_deleted:
                with contextlib.suppress(NotFound):
                    await self._delete(place)
            del self._written[place]
        if failure is not None:
            raise failure

    async def _let_go(self) -> None:
        """Of objects that are waited for by who gets them; looks again soon if there are others."""
        for reference, outgoing in list(self.moves.outgoing.items()):
            place = manifests.place_of_object(reference)
            self._news.set()
            with contextlib.suppress(NotFound, KindNotServed):
                live = await self.clients[place.cluster].get(place.resource, Key(place.namespace, place.name))
                if self.moves.seen(reference, live, namespace=manifests.WORK, now=time.time()):
                    continue
            self.last_failure = f"{reference} is not claimed by {outgoing.receiver}"
        if self.moves.outgoing:
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _put(self, place: Place, each: Input) -> None:
        client = self.clients[place.cluster]
        if each.once:
            with contextlib.suppress(AlreadyExists):
                await client.create(place.resource, each.obj)
            return
        path = place.resource.path(namespace=place.namespace, name=place.name)
        options = {"fieldManager": "campaign", "force": "true"}
        await client.request("PATCH", path, params=options, body=each.obj, content_type=_APPLY, timeout=10)

    async def _delete(self, place: Place) -> None:
        await self.clients[place.cluster].delete(place.resource, Key(place.namespace, place.name), timeout=10)

    async def persist(self, call: Callable[[], T]) -> T:
        """Do something that blocks, again and again until it succeeds."""
        while True:
            try:
                return await asyncio.to_thread(call)
            except (KubeError, LocalProcessError) as error:
                self._count(error)
                await asyncio.sleep(_PAUSE_SECONDS)

    def _count(self, error: Exception) -> None:
        self.last_failure = str(error)
        kind = type(error).__name__
        self.failures[kind] = self.failures.get(kind, 0) + 1

    # --- what is there from the start

    async def begin(self, clusters: dict[str, Cluster]) -> dict[Place, Object]:
        """Returns what belongs to others, as it was written."""
        api = clusters["target"].api
        crd = definition(manifests.WIDGETS)
        path = CUSTOM_RESOURCE_DEFINITIONS.path(name=crd["metadata"]["name"])
        await self.persist(lambda: api.apply(path, crd))
        for cluster, namespace in manifests.namespaces():
            await self.put(Place(cluster, NAMESPACES, "", namespace["metadata"]["name"]), namespace)
        daemon_set = manifests.critical_daemon_set()
        await self.put(manifests.place_of("target", DAEMON_SETS, daemon_set), daemon_set)
        for place, obj in manifests.foreign().items():
            await self.put(place, obj)
        seen = await self.snapshot()
        return {place: seen.objects[place] for place in manifests.foreign()}

    async def put(self, place: Place, obj: Object) -> None:
        """Until it succeeds."""
        while True:
            try:
                await self._put(place, Input(obj))
                return
            except KubeError as error:
                self._count(error)
                await asyncio.sleep(_PAUSE_SECONDS)

    # --- looking

    async def revive_pods(self, seen: Snapshot) -> None:
        """As kubelets do: pods that were given up with their Node, for want of heartbeats, are ready again.

        KWOK, which plays the kubelets, brings back the Nodes only. Raises KubeError.
        """
        for place, pod in seen.objects.items():
            status = pod.get("status") or {}
            ready = condition(pod, "Ready") or {}
            if place.resource != PODS or status.get("phase") != "Running" or ready.get("status") == "True":
                continue
            others = [each for each in status["conditions"] if each["type"] not in {"Ready", "ContainersReady"}]
            again = [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}]
            with contextlib.suppress(NotFound):
                await self.clients["target"].patch(
                    PODS,
                    Key(place.namespace, place.name),
                    {"status": {"conditions": [*others, *again]}},
                    subresource="status",
                )

    async def snapshot(self) -> Snapshot:
        """Raises KubeError."""
        found: dict[Place, Object] = {}
        for cluster, resources in manifests.LOOKED_AT.items():
            for resource in resources:
                with contextlib.suppress(NotFound, KindNotServed):
                    for obj in await self.clients[cluster].list(resource, Selection()):
                        found[manifests.place_of(cluster, resource, obj)] = obj
        wanted = manifests.expected(self.model).tokens
        users = {place: await self._user(found[place]) for place in wanted if place in found}
        return Snapshot(found, users, datetime.now(UTC))

    async def _user(self, secret: Object) -> str:
        token = manifests.decoded((secret.get("data") or {}).get("token", ""))
        if not token:
            return ""
        review = {"spec": {"token": token, "audiences": ["gardener"]}}
        with contextlib.suppress(Conflict):
            answer = await self.clients["target"].create(TOKEN_REVIEWS, review)
            status = answer["status"]
            return str((status.get("user") or {}).get("username", "")) if status.get("authenticated") else ""
        return ""
