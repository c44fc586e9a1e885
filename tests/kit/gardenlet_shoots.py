"""A Seed whose Shoots are made as on this computer, but that no process of theirs runs.

    place = ShootsPlace(garden, seed)
    async with played_provider([place], directory, token=cluster.token):
        ...

Real: garden and seed, and what the local provider writes into the seed for extension objects, Services, Deployments and
Etcds. Simulated: their processes, which are ready at once unless a test holds them up; the resource manager of a Shoot,
as far as others see it (tokens, conditions of ManagedResources); the controller of namespaces, which takes seconds for
each; and the API server of all Shoots, which is that of one real cluster: a kubeconfig of a Shoot leads there, see
`hurry`.
"""

import base64
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from typing import Any, Self, cast

import pytest
import yaml

from agent.gardenlet.common import component_objects, shoot_clusters
from agent.gardenlet.shoot.main.tasks import cleanup
from components.secrets import configs
from config.gardenlet.schema import SNI
from devcluster.cluster import Cluster
from extension.controller import declare
from gardener import keys
from gardener.api.garden import (
    BACKUP_BUCKETS,
    CLOUD_PROFILES,
    CONTROLLER_REGISTRATIONS,
    SEEDS,
    SHOOTS,
)
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_GOOD
from gardener.error_codes import CLEANUP_CLUSTER_RESOURCES
from gardener.garden.seeds import namespace_of
from kit.controllers import cluster_of, loops_at_work
from kit.garden import CONFIRMED, Garden
from kit.garden_objects import garden_object
from kit.gardenlet_controllers import GARDENER, SPEC
from kit.seed_kinds import install_seed_kinds
from kit.world import connected
from kube.clock import format_time, utc_now
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.objects import Key, Object, annotations, finalizers, is_deleting, key, mapping, metadata, uid
from kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS, SERVICES, Resource
from kube.runtime.cache import Store, View, without_managed_fields
from kube.runtime.client import Client, Form, Selection
from kube.runtime.connection import Connection, connection_of_kubeconfig, load_kubeconfig
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.events import EventRecorder
from kube.runtime.finalizers import remove_finalizer
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import exists
from kube.runtime.status import StatusWriter
from kube.x509 import make_rsa_key
from localprocesses.components import Shape
from localprocesses.confined import Confined
from localprocesses.versions import NEWEST
from localprovider.extensions.actuators import ACTUATORS
from localprovider.extensions.state import State
from localprovider.runner.backups import Backups, has_store, secret_of
from localprovider.runner.controller import Runner
from localprovider.runner.places import Places
from localprovider.runner.pods import ROOT, Pod, Pods, Standing
from localprovider.runner.snapshots import BucketAway, Directory, directory_of

_EXTENSIONS = (
    *("BackupBucket", "BackupEntry", "Bastion", "ControlPlane", "DNSRecord", "Extension", "Infrastructure", "Network"),
    *("OperatingSystemConfig", "Worker"),
)
_READY = ("GardenletReady", "SeedSystemComponentsHealthy", "BackupBucketsReady")
_LONG, _SOON = 3600.0, 0.02


SHAPE = Shape(
    played=(
        *("deployment", "disruption", "endpoint", "endpointslice", "horizontalpodautoscaling", "namespace"),
        "replicaset",
    )
)
"""Of the seed."""


class ShootsPlace:
    """A Project and a Seed that is ready, with a domain for Shoots, a bucket, and all that they refer to.

    Args:
        cluster: the seed; it may be that of other places, too.
        is_local: whether each Shoot has an address of its own, as on this computer; else all have that of a gateway.
        beside: another place, in another seed, whose Project it has.
    """

    def __init__(self, garden: Garden, cluster: Cluster, *, is_local: bool = True, beside: Self | None = None) -> None:
        self.garden, self.cluster, self.is_local = garden, cluster, is_local
        install_seed_kinds(cluster, with_istio=True)
        self.kinds = _namespaced(cluster)
        """Of which objects in the namespace of a Shoot may be."""
        self.project: str = garden.place() if beside is None else beside.project
        """Also the name of the CloudProfile."""
        self.name: str = self.project if beside is None else f"{beside.name}-2"
        """Of the Seed."""
        self.namespace = f"garden-{self.project}"
        if beside is None:
            self._project()
        with suppress(AlreadyExists):
            provided = [
                {"kind": kind, "type": "local", **({"workerlessSupported": True} if kind == "Extension" else {})}
                for kind in _EXTENSIONS
            ]
            garden.create(CONTROLLER_REGISTRATIONS, "local", spec={"resources": provided})
        self.seed = self._seed()
        for namespace in ("garden", namespace_of(self.name)):
            with suppress(AlreadyExists):
                garden.create(NAMESPACES, namespace)
            with suppress(AlreadyExists):
                cluster.api.create(NAMESPACES.path(), {"metadata": {"name": namespace}})
        for role, domain in (("internal-domain", "internal.example.com"), ("default-domain", "example.org")):
            self._domain(role, domain)
        self._bucket()
        if not is_local:
            self._gateway()

    def _project(self) -> None:
        garden = self.garden
        profile = garden_object(CLOUD_PROFILES)["spec"] | {"type": "local", "regions": [{"name": "local"}]}
        profile["kubernetes"] = {"versions": [{"version": NEWEST}]}
        garden.create(CLOUD_PROFILES, self.project, spec=profile)
        garden.create(CONFIG_MAPS, _AUDIT, namespace=self.namespace, data={"policy": _AUDIT_POLICY})

    def _seed(self) -> Object:
        spec = garden_object(SEEDS)["spec"] | SPEC
        spec["backup"] = {"provider": "local", "secretRef": {"name": "backup", "namespace": "garden"}}
        spec["dns"]["provider"]["type"] = "local"
        spec["ingress"]["domain"] = f"ingress.{self.name}.example.com"
        spec.pop("taints", None)
        made = self.garden.create(SEEDS, self.name, spec=spec)
        moment = format_time(utc_now())
        times = {"lastTransitionTime": moment, "lastUpdateTime": moment}
        conditions = [{"type": each, "status": "True", "reason": "T", "message": "t", **times} for each in _READY]
        status = {
            "gardener": GARDENER,
            "observedGeneration": metadata(made)["generation"],
            "conditions": conditions,
            "clusterIdentity": "seed",
        }
        return self.garden.patch(SEEDS, self.name, {"status": status}, status=True)

    def _domain(self, role: str, domain: str) -> None:
        notes = {"dns.gardener.cloud/provider": "local", "dns.gardener.cloud/domain": domain}
        meta = {"labels": {keys.ROLE: role}, "annotations": notes}
        self.garden.create(SECRETS, role, namespace=namespace_of(self.name), metadata=meta, stringData={"key": "value"})

    def _bucket(self) -> None:
        """As its own controller and an extension leave it."""
        with suppress(AlreadyExists):
            self.garden.create(SECRETS, "backup", namespace="garden", stringData={"key": "value"})
        spec = {
            "provider": {"type": "local", "region": "local"},
            "secretRef": {"name": "backup", "namespace": "garden"},
            "seedName": self.name,
        }
        made = self.garden.create(BACKUP_BUCKETS, uid(self.seed), spec=spec)
        moment = format_time(utc_now())
        operation = {
            "type": "Create",
            "state": "Succeeded",
            "progress": 100,
            "description": "",
            "lastUpdateTime": moment,
        }
        status = {"lastOperation": operation, "observedGeneration": metadata(made)["generation"]}
        self.garden.patch(BACKUP_BUCKETS, uid(self.seed), {"status": status}, status=True)

    def _gateway(self) -> None:
        """As the controllers of the seed leave it."""
        api, usual = self.cluster.api, SNI().ingress
        where = SERVICES.path(namespace=usual.namespace, name=usual.service_name)
        api.apply(
            NAMESPACES.path(name=usual.namespace), {**NAMESPACES.type_meta, "metadata": {"name": usual.namespace}}
        )
        meta = {"name": usual.service_name, "namespace": usual.namespace}
        ports = {"type": "LoadBalancer", "ports": [{"port": 443}]}
        api.apply(where, {**SERVICES.type_meta, "metadata": meta, "spec": ports})
        api.patch(f"{where}/status", {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.10"}]}}})

    # --- Shoots

    def narrow(self, name: str) -> None:
        """Look only at kinds of which there are objects now, for the Shoot has all that it ever has."""
        api, namespace = self.cluster.api, self.technical_id(name)
        self.kinds[:] = [each for each in self.kinds if api.get(each.path(namespace=namespace))["items"]]

    def shoot(self, name: str, **spec: Any) -> Object:
        """One with all that a Shoot without workers may have."""
        audit = {"auditPolicy": {"configMapRef": {"name": _AUDIT}}}
        whole = {
            "cloudProfile": {"kind": "CloudProfile", "name": self.project},
            "dns": {"domain": f"{name}.{self.project}.example.org"},
            "extensions": [{"type": "local"}],
            "kubernetes": {"version": NEWEST, "kubeAPIServer": {"auditConfig": audit}},
            "maintenance": {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}},
            "networking": {"services": "10.4.0.0/16"},
            "provider": {"type": "local"},
            "purpose": "evaluation",
            "region": "local",
            "seedName": self.name,
        }
        return self.garden.create(SHOOTS, name, namespace=self.namespace, spec=whole | spec)

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    def technical_id(self, name: str) -> str:
        return f"shoot--{self.project}--{name}"

    def get(self, name: str) -> Object:
        return self.garden.get(SHOOTS, name, namespace=self.namespace)

    def find(self, name: str) -> Object | None:
        try:
            return self.get(name)
        except NotFound:
            return None

    def change(self, name: str, body: Object) -> Object:
        return self.garden.patch(SHOOTS, name, body, namespace=self.namespace)

    def delete(self, name: str) -> None:
        self.change(name, CONFIRMED)
        self.garden.delete(SHOOTS, name, namespace=self.namespace)

    def give_up(self, name: str) -> None:
        """A deletion by force, since what is the user's to correct keeps it from being deleted."""
        errors = [{"description": "held", "codes": [CLEANUP_CLUSTER_RESOURCES]}]
        self.garden.patch(SHOOTS, name, {"status": {"lastErrors": errors}}, namespace=self.namespace, status=True)
        self.change(name, {"metadata": {"annotations": {keys.CONFIRM_FORCE_DELETION: "true"}}})


def _namespaced(cluster: Cluster) -> list[Resource]:
    api = cluster.api
    groups = [each["preferredVersion"]["groupVersion"] for each in api.get("/apis")["groups"]]
    found = list[Resource]()
    for prefix, version in [("/api", "v1"), *(("/apis", each) for each in groups)]:
        for each in api.get(f"{prefix}/{version}")["resources"]:
            if each["namespaced"] and {"list", "delete"} <= set(each["verbs"]):
                group, _, number = version.rpartition("/")
                found.append(Resource(group, number, each["kind"], each["name"], namespaced=True))
    return [each for each in found if each.plural != "events"]


_AUDIT, _AUDIT_POLICY = "audit", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n"


# --- what runs of a Shoot


class HoldUp:
    """Pods that do not become ready before they are released, by name, as `etcd-main`."""

    def __init__(self) -> None:
        self.held = frozenset[str]()

    def hold(self, *names: str) -> None:
        self.held = frozenset(names)

    def release(self) -> None:
        self.held = frozenset()


@dataclass(slots=True)
class PlayedPods:
    places: Places
    hold_up: HoldUp
    session: None = None
    ended: Callable[[Key], None] = field(default=lambda _: None)

    async def run(self, pod: Pod) -> Standing:
        files = self.places.files_of(pod.namespace)
        for each in pod.files:
            files.write(f"{pod.namespace}/{pod.name}/{ROOT}{each.path}", each.content)
        return Standing("it is held up", 0.02) if pod.name in self.hold_up.held else Standing("", _LONG)

    async def stop(self, namespace: str, name: str) -> None:
        pass


def played_data(places: Places, etcd: Key) -> Path:
    return places.of_pod(etcd.namespace, etcd.name) / "played"


@dataclass(slots=True)
class PlayedBackups:
    """Of etcds whose data are one file; the only snapshot is the one that a user requested last."""

    places: Places
    buckets: Confined

    async def prepare(self, etcd: Object, place: object, secret: Object | None, stop: object) -> str:
        data = played_data(self.places, key(etcd))
        if not data.exists():
            try:
                newest = self._directory(etcd, secret).snapshots()[:1] if has_store(etcd) else []
            except BucketAway as error:
                return str(error)
            data.write_bytes(newest[0].path.read_bytes() if newest else b"")
        return ""

    async def keep(self, etcd: Object, client: object, secret: Object | None, *, is_asked: bool) -> str:
        if is_asked:
            snapshot = self._directory(etcd, secret).place(utc_now(), 1)
            snapshot.path.write_bytes(played_data(self.places, key(etcd)).read_bytes())
        return ""

    def _directory(self, etcd: Object, secret: Object | None) -> Directory:
        return directory_of(self.buckets, secret, secret_of(etcd), etcd["spec"]["backup"]["store"]["prefix"])


class PlayedRunner(Runner):
    """Everything of it but the processes."""

    def played_control_loops(self, hold_up: HoldUp) -> list[ControlLoop]:
        pods = cast("Pods", PlayedPods(self._places, hold_up))
        backups = cast("Backups", PlayedBackups(self._places, self._buckets))
        return [self._services(), self._deployments(pods), self._etcds(pods, backups), self._copies()]


@dataclass(eq=False, kw_only=True, slots=True)
class _Tokens:
    """Puts a token into each Secret that requests one, as the resource manager of the Shoot does."""

    client: Client
    secrets: Store[Object]
    token: str

    async def reconcile(self, name: Key) -> Result:
        secret = self.secrets.get(name)
        if secret is None or (keys.TOKEN_RENEW_TIMESTAMP in annotations(secret) and self._has_token(secret)):
            return Done()
        renewal = format_time(utc_now() + timedelta(hours=8))
        body = {
            "metadata": {"annotations": {keys.TOKEN_RENEW_TIMESTAMP: renewal}, "uid": uid(secret)},
            "data": self._data(secret),
        }
        with suppress(NotFound):
            await self.client.patch(SECRETS, name, body)
        return Done()

    def _has_token(self, secret: Object) -> bool:
        return self._data(secret) == {name: mapping(secret.get("data")).get(name) for name in self._data(secret)}

    def _data(self, secret: Object) -> dict[str, str]:
        encoded = mapping(secret.get("data")).get("kubeconfig")
        if not encoded:
            return {"token": base64.b64encode(self.token.encode()).decode()}
        config = yaml.safe_load(base64.b64decode(encoded))
        config["users"][0]["user"] = {"token": self.token}
        return {"kubeconfig": base64.b64encode(yaml.safe_dump(config).encode()).decode()}


@dataclass(eq=False, kw_only=True, slots=True)
class _Applied:
    """Reports of each ManagedResource that all is well."""

    managed: Store[Object]
    statuses: StatusWriter

    async def reconcile(self, name: Key) -> Result:
        found = self.managed.get(name)
        if found is not None and not is_deleting(found):
            moment = "2024-01-01T00:00:00Z"
            times = {"lastTransitionTime": moment, "lastUpdateTime": moment}
            conditions = [
                {"type": each, "status": status, "reason": "Test", "message": "test", **times}
                for each, status in RESOURCES_GOOD.items()
            ]
            generation = metadata(found)["generation"]
            with suppress(NotFound):
                await self.statuses.write(found, {"observedGeneration": generation, "conditions": conditions})
        return Done()


@dataclass(eq=False, kw_only=True, slots=True)
class _Namespaces:
    """Empties namespaces of Shoots that are deleted, and lets them go."""

    client: Client
    namespaces: Store[Object]
    places: Collection[ShootsPlace]

    async def reconcile(self, name: Key) -> Result:
        found = self.namespaces.get(name)
        if found is None or not is_deleting(found):
            return Done()
        if await self._left(name.name):
            return RequeueAfter(_SOON)
        empty = {**found, **NAMESPACES.type_meta, "spec": {"finalizers": []}}
        with suppress(NotFound, Conflict):
            await self.client.replace(NAMESPACES, empty, subresource="finalize")
        return Done()

    async def _left(self, namespace: str) -> bool:
        """Whether there was anything; it is deleted."""
        was_any = False
        for resource in next(each for each in self.places if namespace.startswith(each.technical_id(""))).kinds:
            for each in await self.client.list(resource, Selection(namespace=namespace), form=Form.METADATA):
                was_any = True
                await self.client.delete_if_exists(resource, Key(namespace, key(each).name))
        return was_any


def _resource_manager(seed: Any, token: str) -> list[ControlLoop]:
    requests = View(SECRETS, without_managed_fields, label_selector=f"{keys.PURPOSE}={keys.PURPOSE_TOKEN_REQUESTOR}")
    tokens = ControlLoop("played-tokens", kind=SECRETS, workers=2)
    secrets = tokens.watch(seed.caches, requests, enqueue(when=exists))
    applying = ControlLoop("played-managed-resources", kind=MANAGED_RESOURCES, workers=2)
    managed = applying.watch(seed.caches, View(MANAGED_RESOURCES, without_managed_fields), enqueue(when=exists))
    return [
        tokens.reconciled_by(_Tokens(client=seed.client, secrets=secrets, token=token)),
        applying.reconciled_by(_Applied(managed=managed, statuses=StatusWriter(seed.client, managed))),
    ]


def _namespaces(seed: Any, places: Collection[ShootsPlace]) -> ControlLoop:
    of_shoots = View(NAMESPACES, without_managed_fields, label_selector=f"{keys.ROLE}={keys.ROLE_SHOOT}")
    loop = ControlLoop("played-namespaces", kind=NAMESPACES, workers=2)
    namespaces = loop.watch(seed.caches, of_shoots, enqueue(when=exists))
    return loop.reconciled_by(_Namespaces(client=seed.client, namespaces=namespaces, places=places))


@dataclass(eq=False, kw_only=True, slots=True)
class _User:
    """Holds Services of his, and lets them go some time after they are deleted."""

    client: Client
    services: Store[Object]

    async def reconcile(self, name: Key) -> Result:
        found = self.services.get(name)
        if found is not None and is_deleting(found) and HELD in finalizers(found):
            with suppress(NotFound, Conflict):
                await remove_finalizer(self.client, SERVICES, found, HELD)
        return Done()


HELD = "example.com/held"


@asynccontextmanager
async def user_of(shoots: Cluster) -> AsyncIterator[None]:
    """A user of Shoots, who has put finalizers on their Services."""
    async with connected(shoots, "user") as client:
        cluster = cluster_of(client)
        loop = ControlLoop("user", kind=SERVICES, workers=1)
        services = loop.watch(cluster.caches, View(SERVICES, without_managed_fields), enqueue(when=exists))
        loop.reconciled_by(_User(client=client, services=services))
        async with loops_at_work(EventRecorder(client, component="test"), {cluster.caches}, loop):
            yield


@asynccontextmanager
async def played_provider(
    places: Sequence[ShootsPlace], directory: Path, *, token: str, buckets: Path | None = None
) -> AsyncIterator[HoldUp]:
    """Args:
    places: in one seed.
    token: for the API server of the Shoots.
    buckets: shared with the providers of other seeds; None: in the directory.
    """
    seed = places[0].cluster
    async with connected(seed, "local-provider") as client:
        cluster = cluster_of(client)
        state = State(directory / "state", buckets=buckets)
        for each in places:
            state.bucket(uid(each.seed), is_new=True)
        recorder = EventRecorder(client, component="local-provider")
        runner = PlayedRunner(
            cluster,
            directory,
            seed_kubeconfig=seed.kubeconfig,
            buckets=state.buckets,
            recorder=recorder,
        )
        hold_up = HoldUp()
        loops = [
            *(declare(cluster, actuator(client, state), workers=5) for actuator in ACTUATORS),
            *runner.played_control_loops(hold_up),
            *_resource_manager(cluster, token),
            _namespaces(cluster, places),
        ]
        async with loops_at_work(EventRecorder(client, component="test"), {cluster.caches}, *loops):
            yield hold_up


def hurry(monkeypatch: pytest.MonkeyPatch, shoots: Cluster) -> None:
    """Kubeconfigs of Shoots lead to one API server; keys are made once, and what is waited for is looked at often."""
    made = cycle([make_rsa_key(2048) for _ in range(4)])
    monkeypatch.setattr(configs, "make_rsa_key", lambda _: next(made))
    monkeypatch.setattr(shoot_clusters, "connection_of_kubeconfig", _leads_to(shoots))
    for module in (cleanup, component_objects):
        monkeypatch.setattr(module, "_LOOK_SECONDS", 0.05)


def _leads_to(shoots: Cluster) -> Callable[..., Connection]:
    """Takes the place of `connection_of_kubeconfig`: the kubeconfig has to be a good one, with the token."""
    there = load_kubeconfig(shoots.kubeconfig)

    def connect(kubeconfig: bytes, **options: Any) -> Connection:
        return replace(there, credentials=connection_of_kubeconfig(kubeconfig, **options).credentials)

    return connect
