"""A Shoot in the hands of gardenlets that die, one after the other; see `kit.gardenlet_shoots` for what is simulated.

    play = Play(place, "play-1")
    play.ask(Step.CREATE)
    written = await play.lived(moment)
    assert play.state() == ...

A gardenlet is its controllers for Shoots and for BackupEntries, in this process, with the rights of a gardenlet in the
garden. When it dies, its connections are cut: what it sends from then on goes nowhere, and no answer comes back.
"""

import asyncio
import base64
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import Enum
from functools import partial
from typing import Any
from unittest.mock import patch

import orjson

from agent.gardenlet.bootstrap.left_over_operations import LeftOverOperations
from agent.gardenlet.context import Context
from agent.gardenlet.extensions.backup_entry.controller import declare as backup_entries
from agent.gardenlet.flow.record import Subject
from agent.gardenlet.shoot.main.controller import declare as shoots
from config.gardenlet.controllers import Controllers, Shoot
from config.gardenlet.schema import GardenletConfiguration, Images
from devcluster.testing.faults import Request
from gardener import keys
from gardener.api.extensions import BACKUP_ENTRIES as EXTENSION_ENTRIES
from gardener.api.extensions import CLUSTERS
from gardener.api.garden import BACKUP_ENTRIES, INTERNAL_SECRETS, SHOOT_STATES, SHOOTS
from gardener.flow_reports import State
from gardener.garden.shoots import is_current, last_operation
from kit.crash.sweep import Moment, difference, write_of
from kit.eventually import eventually, soon
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context, local_fields
from kit.gardenlet_shoots import ShootsPlace
from kit.granted_rights import Right
from kube.errors import NotFound, TooManyRequests, Unreachable
from kube.objects import Object, is_deleting, key, labels, mapping, metadata, uid
from kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS, Resource
from kube.runtime.client import Client
from kube.runtime.connection import Connection, load_kubeconfig
from kube.runtime.loop import ControlLoop
from kube.runtime.transport import Transport
from process import clusters

_LEFT_OUT = {"events", "leases"}
_FOLLOWS_SECONDS, _NEVER_SECONDS = 10.0, 3600.0
_IMAGES = Images(kubernetes="registry.k8s.io", resource_manager="resource-manager")


class Life:
    """Args: moment: of its end; None: it lives."""

    def __init__(self, moment: Moment | None = None) -> None:
        self.writes: list[Right] = []
        self.over = asyncio.Event()
        self._moment = moment
        self._left = moment.number if moment else 0

    def is_last(self, method: str, path: str) -> bool:
        path, _, query = path.partition("?")
        written = write_of(Request(method=method, path=path, query=query))
        if written is None or written.resource in _LEFT_OUT:
            return False
        self.writes.append(written)
        if self._moment is None or self._moment.of not in {None, written}:
            return False
        self._left -= 1
        return self._left == 0

    @property
    def carries_out(self) -> bool:
        return self._moment is not None and self._moment.carried_out


class MortalTransport(Transport):
    def __init__(self, connection: Connection, *, life: Life) -> None:
        super().__init__(connection)
        self._life = life

    @asynccontextmanager
    async def send(self, method: str, path: str, **options: Any) -> AsyncIterator[Any]:
        if self._life.over.is_set():
            raise Unreachable(f"{method} {path}: dead")
        if self._life.is_last(method, path):
            if self._life.carries_out:
                async with super().send(method, path, **options) as response:
                    await response.read()
            self._life.over.set()
            await asyncio.Event().wait()
        async with super().send(method, path, **options) as response:
            yield response


class Died(Exception):
    """The end of a gardenlet."""


def _config(place: ShootsPlace) -> GardenletConfiguration:
    """Progress is always about to be written: how often it is would depend on the computer."""
    controllers = Controllers(shoot=Shoot(progress_report_period=_NEVER_SECONDS))
    fields = local_fields() if place.is_local else {"images": _IMAGES}
    return gardenlet_config(place.name, controllers=controllers, **fields)


class Step(Enum):
    """Of the life of a Shoot."""

    CREATE = "create"
    CHANGE = "change"
    SLEEP = "sleep"
    WAKE = "wake"
    ROTATE = "rotate"
    COMPLETE = "complete"
    DELETE = "delete"
    GIVE_UP = "give up"

    @property
    def is_end(self) -> bool:
        return self in {Step.DELETE, Step.GIVE_UP}


_SPECS: dict[Step, Object] = {
    Step.CHANGE: {"kubernetes": {"kubeAPIServer": {"requests": {"maxMutatingInflight": 123}}}},
    Step.SLEEP: {"hibernation": {"enabled": True}},
    Step.WAKE: {"hibernation": {"enabled": False}},
}
_OPERATIONS = {Step.ROTATE: "rotate-credentials-start", Step.COMPLETE: "rotate-credentials-complete"}
_ROTATED = {
    *("ca", "ca-client", "ca-etcd", "ca-etcd-peer", "ca-front-proxy"),
    *("kube-apiserver-etcd-encryption-key", "service-account-key"),
}
"""Configs whose Secret of before stays until a rotation is completed."""
_FOLLOWS = "generic-token-kubeconfig"
"""The config whose Secret has the bundle in it: the one of before stays."""


class Play:
    """Args: name: of the Shoot; no part of anything else's."""

    def __init__(self, place: ShootsPlace, name: str) -> None:
        self.place, self.name = place, name
        self.technical_id = place.technical_id(name)
        self._uid = ""
        self._found: Object = {}
        self.keys: dict[str, str] = {}
        """Uids of the Secrets that were generated, by name."""
        self.rotated: dict[str, str] = {}
        """Of those, what is rotated in two steps."""
        self.was_killed = False
        """Whether the moment has come for the last gardenlet."""
        self.deaths = 0
        """For how many it has."""

    # --- what is requested

    def ask(self, step: Step) -> None:
        if step is Step.CREATE:
            self._uid = uid(self.place.shoot(self.name))
        elif step.is_end:
            self.place.delete(self.name)
            if step is Step.GIVE_UP:
                self.place.give_up(self.name)
        elif step in _OPERATIONS:
            self.place.change(self.name, {"metadata": {"annotations": {keys.OPERATION: _OPERATIONS[step]}}})
        else:
            self.place.change(self.name, {"spec": _SPECS[step]})

    def is_done(self) -> bool:
        """Whether what was requested last is so."""
        shoot = self.place.find(self.name)
        if shoot is None:  # its BackupEntry has an owner, and goes after it
            return not any(self.state().values())
        is_succeeded = is_current(shoot) and last_operation(shoot).get("state") == "Succeeded"
        return is_succeeded and not is_deleting(shoot)

    # --- lives

    async def lived(self, moment: Moment | None = None) -> list[Right]:
        """What is written until all is done, by a gardenlet that dies at the moment, and by the next one.

        A moment does not come if there are fewer writes.
        """
        before = await self.life(moment)
        if not self.was_killed:
            return before
        died = last_operation(self.place.find(self.name) or {})
        after = await self.life()
        if (shoot := self.place.find(self.name)) is not None and died.get("state") not in {None, "Succeeded"}:
            assert last_operation(shoot)["type"] == died["type"], "another operation was begun"
        return [*before, *after]

    async def life(
        self, moment: Moment | None = None, *, until: Callable[[Context], bool] = lambda _: False
    ) -> list[Right]:
        """What one gardenlet writes. Args: until: when it dies, whatever it does."""
        life = Life(moment)
        async with self._gardenlet(life) as (context, loops):

            async def is_over() -> bool:
                if life.over.is_set() or until(context):
                    return True
                return all(loop.queue.is_idle for loop in loops) and await asyncio.to_thread(self.is_done)

            await soon(is_over, "the end", state=self.explain)
            self.was_killed = life.over.is_set()
            self.deaths += self.was_killed
            life.over.set()
        return life.writes

    def waits_in(self, context: Context, task: str) -> bool:
        """Whether a task of its flow waits for something."""
        flows = context.flows.find(Subject(SHOOTS.kind, self.place.key(self.name)))
        if flows is None or flows.running is None:
            return False
        running = [each for each in flows.running.report().tasks if each.state is State.RUNNING]
        return any(each.id == task and each.reason for each in running)

    @asynccontextmanager
    async def _gardenlet(self, life: Life) -> AsyncIterator[tuple[Context, list[ControlLoop]]]:
        """It ends as a process that is killed, also if the block comes to its end."""
        place = self.place
        of_garden = load_kubeconfig(place.garden.gardenlet_kubeconfig(place.name))
        of_seed = load_kubeconfig(place.cluster.kubeconfig)
        with patch.object(clusters, "Transport", partial(MortalTransport, life=life)), suppress(Died):
            async with (
                MortalTransport(of_garden, life=life) as to_garden,
                MortalTransport(of_seed, life=life) as to_seed,
            ):
                garden = Client(to_garden, user_agent="gardenlet/garden")
                seed = Client(to_seed, user_agent="gardenlet/seed")
                await LeftOverOperations(garden=garden, seed_name=place.name).abort()
                context = await gardenlet_context(garden=garden, seed=seed, config=_config(place))
                async with gardenlet_at_work(context, shoots, backup_entries) as loops:
                    yield context, loops
                    raise Died

    def explain(self) -> object:
        return (self.place.find(self.name) or {}).get("status")

    # --- the end state

    def state(self) -> Object:
        """Of the seed and of the garden, without what differs from Shoot to Shoot."""
        seed, garden = self.place.cluster.api, self.place.garden.cluster.api
        found = [
            *(each for kind in self.place.kinds for each in _listed(seed, kind, self.technical_id)),
            *_found(seed, NAMESPACES, self.technical_id),
            *_found(seed, CLUSTERS, self.technical_id),
            *self._own(seed, EXTENSION_ENTRIES),
            *self._own(seed, SECRETS, "garden"),
        ]
        of_garden = [
            *(each for kind in _KINDS_OF_GARDEN for each in self._own(garden, kind, self.place.namespace)),
            *([shoot] if (shoot := self.place.find(self.name)) else []),
        ]
        return {"seed": self._grouped(found), "garden": self._grouped(of_garden)}

    async def check(self, expected: Object, what: object) -> None:
        """What is simulated follows in a moment."""

        def is_as_expected() -> bool:
            self._found = self.state()
            return self._found == expected

        try:
            await soon(lambda: asyncio.to_thread(is_as_expected), "the state", seconds=_FOLLOWS_SECONDS)
        except AssertionError:
            raise AssertionError(f"{what}:\n{difference(expected, self._found)}") from None

    def _own(self, api: Any, kind: Resource, namespace: str = "") -> list[Object]:
        return [each for each in _listed(api, kind, namespace) if self.name in key(each).name]

    def _grouped(self, objects: list[Object]) -> Object:
        named: dict[str, list[Object]] = {}
        for each in objects:
            normal = self._normal(each)
            meta = normal["metadata"]
            named.setdefault(f"{normal['kind']} {meta.get('namespace', '')}/{meta['name']}", []).append(normal)
        return {name: sorted(each, key=orjson.dumps) for name, each in sorted(named.items())}

    def _normal(self, obj: Object) -> Object:
        if obj.get("data"):
            obj = {**obj, "data": sorted(obj["data"])}
        normal = _without_transient(obj)
        raw = _TIME.sub("<time>", orjson.dumps(normal).decode()).replace(self.name, "$MARK")
        for pattern, instead in ((self._uid, "$UID"), *_RANDOM):
            raw = re.sub(pattern, instead, raw)
        found: Object = orjson.loads(raw)
        return found

    def generated(self) -> list[Object]:
        """What the secrets manager has made."""
        found = _listed(self.place.cluster.api, SECRETS, self.technical_id)
        return [each for each in found if labels(each).get("managed-by") == "secrets-manager"]

    def check_keys(self, step: Step) -> None:
        """There is one of each, or two while it is rotated, and those of before are as they were."""
        made = self.generated()
        counts = Counter(labels(each)["name"] for each in made)
        two = {Step.ROTATE: {*_ROTATED, _FOLLOWS}, Step.COMPLETE: {_FOLLOWS}}.get(step, set())
        assert {name: count for name, count in counts.items() if count > 1} == dict.fromkeys(two, 2)
        now = {key(each).name: uid(each) for each in made}
        rotated = {key(each).name: uid(each) for each in made if labels(each)["name"] in _ROTATED}
        match step:
            case Step.ROTATE:
                assert {*self.rotated.items()} < {*rotated.items()}
            case Step.COMPLETE:
                assert {*rotated.items()} < {*self.rotated.items()}
            case _:
                assert {name: now.get(name) for name in self.keys} == self.keys
        self.keys, self.rotated = now, rotated
        self.check_published()

    def check_published(self) -> None:
        """Users find the authorities that it has."""
        bundle = next(each for each in self.generated() if labels(each)["name"] == "ca-bundle")
        published = _found(self.place.garden.cluster.api, CONFIG_MAPS, f"{self.name}.ca-cluster", self.place.namespace)
        (config_map,) = published
        assert base64.b64decode(bundle["data"]["bundle.crt"]).decode() == config_map["data"]["ca.crt"]


_KINDS_OF_GARDEN = (SECRETS, CONFIG_MAPS, INTERNAL_SECRETS, BACKUP_ENTRIES, SHOOT_STATES)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_TRANSIENT = {"creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "uid"}
_HASH = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{5})?\b")
_REFERENCES = "reference.resources.gardener.cloud/"
_RANDOM = (
    (r'"(Restoration|Reconciliation) of BackupEntry', '"Reconciliation of BackupEntry'),  # each process looks at it
    (r"has been successfully restored", "has been successfully reconciled"),
    (r"\b[0-9a-f]{64}\b", "<hash>"),
    (r"\b[0-9a-f]{32}\b", "<hash>"),
    (r"-[0-9a-f]{8}(-[0-9a-f]{5})?\b", "-<hash>"),
    (r'"clusterIPs?":("[^"]*"|\[[^\]]*\])', '"clusterIP":""'),
    (r'"(checksum-of-[a-z-]+|issued-at-time|last-rotation-initiation-time|valid-until-time)":"[^"]*"', '"":""'),
    (r'"nodePort":\d+', '"nodePort":0'),
    (r"Bearer \w+", "Bearer <token>"),
    (r"\b10\.96\.\d+\.\d+", "<address>"),
    (r"127\.0\.0\.1:\d+", "<address>"),
    (r'"ports":\[\{"port":\d+,"protocol":"TCP"\}[^\]]*\]', '"ports":[]'),
    (r'"(full|defragmentation)(Snapshot)?Schedule":"[^"]*"', '"schedule":""'),
)


def _without_transient(value: Any) -> Any:
    """Also of objects in objects. Whether a status is about the spec as it is is left of generations."""
    if isinstance(value, list):
        return [_without_transient(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _WITHOUT[name](each) if name in _WITHOUT else each for name, each in value.items()}
    if "sequence" in mapping(found.get("operation")):  # how often it was requested
        del found["operation"]
    if "observedGeneration" in (status := mapping(found.get("status"))):
        is_observed = status["observedGeneration"] == mapping(value.get("metadata")).get("generation")
        found["status"] = {**status, "observedGeneration": is_observed}
    return {name: _without_transient(each) for name, each in found.items()}


def _of_metadata(meta: Object) -> Object:
    owners = [{**owner, "uid": ""} for owner in meta.get("ownerReferences") or []]
    return {name: each for name, each in meta.items() if name not in _TRANSIENT} | {"ownerReferences": owners}


def _of_annotations(notes: Object) -> Object:
    """References have hashes in their names."""
    references = sorted(_HASH.sub("-<hash>", each) for name, each in notes.items() if name.startswith(_REFERENCES))
    return {name: each for name, each in notes.items() if not name.startswith(_REFERENCES)} | {_REFERENCES: references}


def _of_last_operation(operation: Object) -> Object:
    """A process that starts again has nothing to create."""
    return {**operation, "type": ""}


_WITHOUT: dict[str, Callable[[Object], Object]] = {
    "metadata": _of_metadata,
    "annotations": _of_annotations,
    "lastOperation": _of_last_operation,
}


def _listed(api: Any, resource: Resource, namespace: str = "") -> list[Object]:
    path = resource.path(namespace=namespace)
    found = eventually(lambda: api.get(path), path, passing=(TooManyRequests,))["items"]
    return [
        {**resource.type_meta, **each}
        for each in found
        if metadata(each)["name"] not in {"kube-root-ca.crt", "default"}
    ]


def _found(api: Any, resource: Resource, name: str, namespace: str = "") -> list[Object]:
    try:
        return [api.get(resource.path(namespace=namespace, name=name))]
    except NotFound:
        return []
