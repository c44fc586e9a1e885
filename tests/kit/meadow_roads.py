"""The controller of Shoots in a test's own process, on roads on which things go wrong.

    made = SeedBox(garden, seed, SEED, shoots=True)
    without_shoots(made)
    made.install()
    async with roads(meadow, tmp_path) as road:
        road.garden.rules.add(...)

All else of the gardenlet is in its own process, as the local provider and the seed's resource manager are.
"""

import asyncio
import base64
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import orjson

from agent.gardenlet.common import shoot_clusters
from agent.gardenlet.flow.run import run
from agent.gardenlet.shoot.main import reconcile
from agent.gardenlet.shoot.main.controller import declare
from agent.gardenlet.shoot.main.tasks import cleanup
from devcluster.api import Api
from devcluster.garden.seed import SeedBox
from devcluster.testing.faults import Rule
from devcluster.testing.proxy import FaultProxy
from gardener.api.garden import SEEDS, SHOOTS
from kit.controllers import cluster_of
from kit.eventually import soon
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context, local_fields
from kit.meadow import NAME, SEED, TECHNICAL_ID, Meadow
from kit.objects import decoded
from kit.proxied import QUICK, ImpatientClient, proxied
from kit.world import connected
from kube.objects import Object, labels, uid
from kube.paths import at, mapping_at, mappings_at
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.cache import Change, View, without_managed_fields
from kube.runtime.connection import Connection, connection_of_kubeconfig
from kube.runtime.discovery_documents import AGGREGATED, resources_in
from kube.runtime.kubeconfig import parse_kubeconfig

_LONGEST_BACK_OFF = 1.0
_SOON_SECONDS = 0.2
_FLEETING = frozenset({"Event", "Lease", "EndpointSlice"})
"""Kinds of which objects come and go by themselves."""


def without_shoots(box: SeedBox) -> None:
    """Before it is installed: its gardenlet leaves Shoots alone."""
    file = box.gardenlet.config_file
    config = orjson.loads(file.read_bytes())
    config["controllers"]["shoot"] = {"enabled": False}
    file.write_bytes(orjson.dumps(config))


def inventory(api: Api, *, namespace: str = "") -> dict[str, str]:
    """Uids of all that a cluster, or a namespace, has, by kind and name."""
    found = {}
    for root in ("/api", "/apis"):
        answer = orjson.loads(api.raw("GET", root, headers={"Accept": AGGREGATED})[1])
        for resource in resources_in(answer):
            if resource.kind in _FLEETING or (namespace and not resource.namespaced):
                continue
            status, body = api.raw("GET", resource.path(namespace=namespace))
            for each in orjson.loads(body).get("items") or () if status == 200 else ():
                place = at(each, "metadata", "namespace") or ""
                found[f"{resource.kind}.{resource.group} {place}/{each['metadata']['name']}"] = uid(each)
    return found


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a Shoot and its keys, by watches that nothing disturbs.

    Attributes:
        operations: each type and state of its last operation, with the text.
        codes: of all its last errors.
        authorities: uids of all that there ever were, by name of the config.
        credentials: for DNS, as they were last, by the name of the Secret.
    """

    operations: list[tuple[str, str, str]] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    authorities: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    credentials: dict[str, Object] = field(default_factory=dict)

    def states(self, kind: str) -> list[str]:
        return [state for of_kind, state, _ in self.operations if of_kind == kind]

    def note_shoot(self, change: Change[Object]) -> None:
        last = mapping_at(change.new or {}, "status", "lastOperation")
        if change.new is not None and change.key.name == NAME and last:
            self.operations.append((last["type"], last["state"], last.get("description", "")))
            for error in mappings_at(change.new, "status", "lastErrors"):
                self.codes.update(error.get("codes") or ())

    def note_secret(self, change: Change[Object]) -> None:
        if change.new is None:
            return
        if (name := labels(change.new).get("name", "")).startswith("ca"):
            self.authorities[name].add(uid(change.new))
        if change.key.name.startswith("dnsrecord-"):
            self.credentials[change.key.name] = decoded(change.new)


@asynccontextmanager
async def watched(meadow: Meadow) -> AsyncIterator[Seen]:
    seen = Seen()
    async with connected(meadow.garden) as to_garden, connected(meadow.seed) as to_seed:
        garden, seed = cluster_of(to_garden), cluster_of(to_seed, TECHNICAL_ID)
        shoots, secrets = (View(each, without_managed_fields) for each in (SHOOTS, SECRETS))
        async with garden.caches.use(shoots) as store, seed.caches.use(secrets) as keys:
            store.subscribe(seen.note_shoot)
            keys.subscribe(seen.note_secret)
            yield seen
        await garden.caches.close()
        await seed.caches.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Roads:
    """Attributes: shoot: to the Shoot's own API server; None: it has none yet."""

    garden: FaultProxy
    seed: FaultProxy
    shoot: FaultProxy | None

    def all(self) -> list[FaultProxy]:
        return [each for each in (self.garden, self.seed, self.shoot) if each is not None]


@asynccontextmanager
async def roads(meadow: Meadow, directory: Path, *, seed: int = 0) -> AsyncIterator[Roads]:
    """The controller at work. Args: seed: of the dice of all faults."""
    async with AsyncExitStack() as stack:
        proxies, clients = [], []
        for number, cluster in enumerate((meadow.garden, meadow.seed)):
            place = directory / str(number)
            place.mkdir(exist_ok=True)
            proxy, transport = await stack.enter_async_context(proxied(cluster, place, seed=seed + number))
            proxies.append(proxy)
            clients.append(ImpatientClient(transport, user_agent=f"gardenlet-{number}"))
        shoot = await _to_shoot(meadow, stack, seed=seed + 2)
        garden = meadow.garden.api
        identity = garden.get(CONFIG_MAPS.path(namespace="kube-system", name="cluster-identity"))
        context = await gardenlet_context(
            garden=clients[0],
            seed=clients[1],
            config=gardenlet_config(SEED, **local_fields()),
            timings=QUICK,
            as_gardenlet=True,
        )
        context = replace(
            context,
            gardener=garden.get(SEEDS.path(name=SEED))["status"]["gardener"],
            garden_identity=identity["data"]["cluster-identity"],
        )
        stack.enter_context(patch.object(reconcile, "SEED_SECONDS", _SOON_SECONDS))
        stack.enter_context(patch.object(cleanup, "_LOOK_SECONDS", _SOON_SECONDS))
        stack.enter_context(patch.object(reconcile, "run", partial(run, sleep=_briefly)))
        (loop,) = await stack.enter_async_context(gardenlet_at_work(context, declare))
        loop.queue._max_backoff = _LONGEST_BACK_OFF
        yield Roads(garden=proxies[0], seed=proxies[1], shoot=shoot)


async def _briefly(seconds: float) -> None:
    """Pauses of a flow, of which there are many."""
    await asyncio.sleep(min(seconds, _SOON_SECONDS))


async def _to_shoot(meadow: Meadow, stack: AsyncExitStack, *, seed: int) -> FaultProxy | None:
    """A proxy that the controller takes for the Shoot's API server."""
    access = meadow.access()
    if access is None:
        return None
    server, ca, _ = access
    authority = meadow.garden.authority
    proxy = await stack.enter_async_context(FaultProxy(upstream=server, upstream_ca=ca, authority=authority, seed=seed))
    stack.enter_context(patch.object(shoot_clusters, "connection_of_kubeconfig", _through(proxy, authority.bundle)))
    return proxy


def _through(proxy: FaultProxy, ca: bytes) -> Callable[..., Connection]:
    def changed(kubeconfig: bytes, *, origin: str) -> Connection:
        config = parse_kubeconfig(kubeconfig, origin=origin)
        own = {"server": proxy.url, "certificate-authority-data": base64.b64encode(ca).decode()}
        config["clusters"][0]["cluster"] |= own
        return connection_of_kubeconfig(orjson.dumps(config), origin=origin)

    return changed


@asynccontextmanager
async def away(proxy: FaultProxy, *rules: Rule) -> AsyncIterator[None]:
    """These faults, and no others, meet all that fits, connections that are open are cut."""
    before = list(proxy.rules)
    proxy.rules.clear()
    proxy.rules.add(*rules)
    proxy.drop_all_connections()
    try:
        yield
    finally:
        proxy.rules.clear()
        proxy.rules.add(*before)
        proxy.drop_all_connections()


async def struck(proxy: FaultProxy, times: int) -> None:
    """Until so many requests have met the faults in force."""
    await soon(lambda: proxy.rules.hits >= times, f"{times} requests to meet a fault")
