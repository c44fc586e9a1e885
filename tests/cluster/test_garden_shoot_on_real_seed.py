"""A Shoot on a seed with pods: its API server is reached through the seed's ingress gateway, by its names.

etcd-druid, kubelets, extensions and the Shoot's resource manager are simulated as their contracts demand; garden, seed, and
what stands for the Shoot's own cluster are real API servers. The gardenlet has the rights of the manifests in the seed.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from agent.gardenlet.context import Context
from agent.gardenlet.shoot.main.controller import declare
from config.gardenlet.schema import Images
from devcluster.cluster import Cluster
from devcluster.garden.box import account_of
from devcluster.garden.objects import GARDENLET_ACCOUNT, of_seed, path
from devcluster.garden.seed import SHAPE_WITH_SHOOTS
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.druid import ETCDS
from gardener.api.extensions import DNS_RECORDS
from gardener.api.garden import CLOUD_PROFILES, SEEDS, SHOOTS
from gardener.api.kinds import DESTINATION_RULES, ENVOY_FILTERS, GATEWAYS, VIRTUAL_SERVICES
from gardener.garden.seeds import namespace_of
from kit.eventually import soon
from kit.garden import Garden
from kit.gardenlet_controllers import GARDENER, gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.gardenlet_seeds import SeedPlace
from kit.played_shoots import ShootsAt
from kit.seed_kinds import install_seed_kinds
from kit.seed_with_pods import pods
from kit.world import connected
from kube.clock import format_time, utc_now
from kube.objects import Object, mapping, metadata
from kube.paths import at, mapping_at
from kube.resources import DEPLOYMENTS, NAMESPACES, SECRETS, SERVICES, Resource
from kube.runtime.connection import load_kubeconfig

pytestmark = pytest.mark.timeout(600)

NAME, GATEWAY_ADDRESS = "s", "192.0.2.10"
INTERNAL_DOMAIN = "internal.example.net"
GATEWAY = ("istio-ingress", "istio-ingressgateway")


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster(shape=SHAPE_WITH_SHOOTS) as cluster:
        install_seed_kinds(cluster, with_istio=True)
        for each in of_seed():
            cluster.api.apply(path(each), each)
        yield cluster


@pytest.fixture(scope="module")
def shoot_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


class RealSeed:
    """Args: version: of the cluster that stands for the Shoot's."""

    def __init__(self, garden: Garden, seed: Cluster, version: str) -> None:
        self.seeds = SeedPlace(garden, seed, has_backup=False)
        self.place, self.cluster, self.version = self.seeds.place, seed, version
        self.technical_id = f"shoot--{self.place.name}--{NAME}"
        domain = f"{self.place.name}.example.org"
        self.seeds.secret("default-domain", "default-domain")
        for name, served in (("internal-domain", INTERNAL_DOMAIN), ("default-domain", domain)):
            notes = {"dns.gardener.cloud/provider": self.place.name, "dns.gardener.cloud/domain": served}
            body: Object = {"metadata": {"annotations": notes}}
            garden.patch(SECRETS, name, body, namespace=namespace_of(self.seeds.name))
        self.hosts = [f"api.{NAME}.{self.place.name}.{INTERNAL_DOMAIN}", f"api.{NAME}.{domain}"]
        self._prepare_seed()

    def _prepare_seed(self) -> None:
        """As its own controllers leave it."""
        namespace, service = GATEWAY
        labels = {"gardener.cloud/role": "istio-ingress"}
        meta: Object = {"name": namespace, "labels": labels}
        self.cluster.api.apply(NAMESPACES.path(name=namespace), {**NAMESPACES.type_meta, "metadata": meta})
        spec = {"type": "LoadBalancer", "ports": [{"name": "tls", "port": 443, "protocol": "TCP"}]}
        where = SERVICES.path(namespace=namespace, name=service)
        meta = {"name": service, "namespace": namespace}
        self.cluster.api.apply(where, {**SERVICES.type_meta, "metadata": meta, "spec": spec})
        status: Object = {"loadBalancer": {"ingress": [{"ip": GATEWAY_ADDRESS}]}}
        self.cluster.api.patch(f"{where}/status", {"status": status})
        now = format_time(utc_now())
        times = {"lastTransitionTime": now, "lastUpdateTime": now}
        conditions = [
            {"type": each, "status": "True", "reason": "Test", "message": "test", **times}
            for each in ("GardenletReady", "SeedSystemComponentsHealthy")
        ]
        generation = metadata(self.place.get(SEEDS, self.seeds.name))["generation"]
        about = {"gardener": GARDENER, "clusterIdentity": "seed", "observedGeneration": generation}
        self.place.patch(SEEDS, self.seeds.name, {"status": {**about, "conditions": conditions}}, status=True)

    def create(self) -> None:
        offered: Object = {"spec": {"kubernetes": {"versions": [{"version": self.version}]}}}
        self.place.patch(CLOUD_PROFILES, self.place.name, offered)
        self.place.shoot(
            NAME,
            seedName=self.seeds.name,
            secretBindingName=None,
            kubernetes={"version": self.version},
            networking={"services": "100.104.0.0/13"},
            provider={"type": self.place.name},
            dns={"domain": self.hosts[1].removeprefix("api.")},
            controlPlane={"highAvailability": {"failureTolerance": {"type": "node"}}},
            maintenance={"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}},
        )

    def hibernate(self, *, enabled: bool) -> None:
        self.place.patch(SHOOTS, NAME, {"spec": {"hibernation": {"enabled": enabled}}})

    def shoot(self) -> Object | None:
        return self.place.find(SHOOTS, NAME)

    async def succeeds(self, kind: str) -> Object:
        """The status, once an operation of this type has succeeded with what is requested now."""

        def found() -> Object | None:
            shoot = self.shoot() or {}
            status, last = mapping(shoot.get("status")), mapping_at(shoot, "status", "lastOperation")
            is_current = status.get("observedGeneration") == at(shoot, "metadata", "generation")
            return status if is_current and (last.get("type"), last.get("state")) == (kind, "Succeeded") else None

        done: Object = await soon(found, f"{kind} of the Shoot", state=lambda: (self.shoot() or {}).get("status"))
        return done

    def find(self, resource: Resource, name: str, *, namespace: str = "") -> Object | None:
        where = (namespace or self.technical_id) if resource.namespaced else ""
        return self.seeds.find(resource.path(namespace=where, name=name))

    def at_gateway(self) -> set[str]:
        """What of its objects there is by which names lead to the API server."""
        own = [each for each in (DESTINATION_RULES, GATEWAYS, VIRTUAL_SERVICES) if self.find(each, "kube-apiserver")]
        filters = [ENVOY_FILTERS] if self.find(ENVOY_FILTERS, self.technical_id, namespace=GATEWAY[0]) else []
        return {each.kind for each in [*own, *filters]}

    def records(self) -> dict[str, list[str]]:
        """Values by name."""
        listed = self.cluster.api.get(DNS_RECORDS.path(namespace=self.technical_id))["items"]
        return {each["spec"]["name"]: each["spec"]["values"] for each in listed}

    def replicas(self) -> dict[str, int]:
        """Of Deployments and Etcds."""
        kinds = [each.path(namespace=self.technical_id) for each in (DEPLOYMENTS, ETCDS)]
        listed = [each for where in kinds for each in self.cluster.api.get(where)["items"]]
        return {metadata(each)["name"]: each["spec"]["replicas"] for each in listed}

    @asynccontextmanager
    async def gardenlet(self, detours: ShootsAt) -> AsyncIterator[Context]:
        account = account_of(self.cluster, GARDENLET_ACCOUNT)
        of_garden = self.seeds.garden.gardenlet_kubeconfig(self.seeds.name)
        images = Images(resource_manager="registry.example.com/rm:v1", kubernetes="registry.example.com/k8s")
        config = gardenlet_config(self.seeds.name, images=images)
        async with connected(of_garden) as garden, connected(account) as client:
            context = await gardenlet_context(garden=garden, seed=client, config=config, clusters=detours)
            async with gardenlet_at_work(context, declare):
                yield context


@pytest.fixture
def seed(garden: Garden, seed_cluster: Cluster, shoot_cluster: Cluster) -> Iterator[RealSeed]:
    version = shoot_cluster.api.get("/version")["gitVersion"].removeprefix("v")
    seed = RealSeed(garden, seed_cluster, version)
    with seed.seeds.resource_manager():
        yield seed


AT_GATEWAY = {"DestinationRule", "EnvoyFilter", "Gateway", "VirtualService"}


async def test_it_comes_sleeps_wakes_and_goes(seed: RealSeed, shoot_cluster: Cluster) -> None:
    detours = ShootsAt(load_kubeconfig(shoot_cluster.kubeconfig))
    async with connected(seed.cluster) as administrator, asyncio.TaskGroup() as tasks:
        playing = tasks.create_task(pods(administrator, seed.technical_id, shoot_cluster).play())
        async with seed.gardenlet(detours):
            awake = await _comes(seed, detours)

            seed.hibernate(enabled=True)
            assert (await seed.succeeds("Reconcile"))["hibernated"] is True
            assert seed.replicas() == dict.fromkeys(awake, 0)
            assert (seed.at_gateway(), seed.records()) == (set(), {})

            seed.hibernate(enabled=False)
            assert (await seed.succeeds("Reconcile"))["hibernated"] is False
            assert seed.replicas() == awake
            assert seed.records() == {host: [GATEWAY_ADDRESS] for host in seed.hosts}
            await soon(lambda: seed.at_gateway() == AT_GATEWAY, "the gateway to know its names", state=seed.at_gateway)

            seed.place.delete(SHOOTS, NAME)
            await soon(
                lambda: seed.shoot() is None, "the Shoot to go", state=lambda: (seed.shoot() or {}).get("status")
            )
            assert seed.find(NAMESPACES, seed.technical_id) is None
            assert seed.at_gateway() == set()
        playing.cancel()
    seed.seeds.remove()


async def _comes(seed: RealSeed, detours: ShootsAt) -> dict[str, int]:
    """Its replicas."""
    seed.create()
    status = await seed.succeeds("Create")
    awake = seed.replicas()
    etcds = {"etcd-main": 3, "etcd-events": 3}
    assert awake == {"kube-apiserver": 3, "kube-controller-manager": 2, "gardener-resource-manager": 2, **etcds}
    assert seed.records() == {host: [GATEWAY_ADDRESS] for host in seed.hosts}
    urls = {each["name"]: each["url"] for each in status["advertisedAddresses"]}
    assert [urls["internal"], urls["external"]] == [f"https://{host}" for host in seed.hosts]
    assert set(detours.requested) == {f"https://{seed.hosts[0]}"}
    service = seed.find(SERVICES, "kube-apiserver") or {}
    assert service["spec"]["type"] == "ClusterIP"
    await soon(lambda: seed.at_gateway() == AT_GATEWAY, "the gateway to know its names", state=seed.at_gateway)
    routes = seed.find(VIRTUAL_SERVICES, "kube-apiserver") or {}
    assert routes["spec"]["hosts"] == sorted(seed.hosts)
    return awake
