"""Components of a seed that may be left out: deployed, left as they are, and removed."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress

import pytest

from agent.gardenlet.seed.main.controller import declare
from components import seed_registry
from config.gardenlet.schema import ExposureClassHandler, Images
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.extensions import DNS_RECORDS
from gardener.api.garden import CONTROLLER_INSTALLATIONS, SEEDS
from gardener.api.kinds import (
    ENVOY_FILTERS,
    MANAGED_RESOURCES,
    POD_MONITORS,
    PROMETHEUS_RULES,
    PROMETHEUSES,
    SCRAPE_CONFIGS,
    SERVICE_MONITORS,
)
from kit.eventually import eventually, soon
from kit.garden import Garden
from kit.gardenlet_controllers import all_but
from kit.gardenlet_seeds import GARDEN, SeedPlace, changing
from kit.kinds import definition
from kube.clock import format_time, utc_now
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.objects import Object, annotations, is_deleting, labels, metadata
from kube.paths import at
from kube.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    INGRESSES,
    NAMESPACES,
    SECRETS,
    SERVICES,
    Resource,
)
from kube.x509 import load_certificates, profile_of

pytestmark = pytest.mark.timeout(900)

NAMES = {each.name for each in seed_registry.COMPONENTS}
WITHOUT_MANAGED_RESOURCE = {"vpn-authorization-server"}
IMAGES = Images(
    etcd_druid="druid",
    ingress_default_backend="backend",
    istio_discovery="discovery",
    istio_proxy="proxy",
    kube_state_metrics="metrics",
    nginx_ingress_controller="nginx",
    prometheus_operator="operator",
    config_reloader="reloader",
    prometheus="prometheus:v2.54.1",
    plutono="plutono",
    dashboard_refresher="refresher",
    vpa_admission_controller="admission",
    vpa_recommender="recommender",
    vpa_updater="updater",
    vpn_authorization_server="authorization",
)
WITH_ALL = {"images": IMAGES, "omit": all_but(*NAMES)}
USED = {
    "plutono-admin": "plutono",
    "vpa-admission-controller-server": "vpa-admission-controller",
}
"""Configs of Secrets, and the Deployments that use them."""
READ = (POD_MONITORS, PROMETHEUS_RULES, SCRAPE_CONFIGS, SERVICE_MONITORS)
READ_COUNT = {"PodMonitor": 3, "PrometheusRule": 5, "ScrapeConfig": 5, "ServiceMonitor": 3}
"""In the namespace `garden`."""
OTHERS = f"{PROMETHEUSES.plural}.{PROMETHEUSES.group}"


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Of this file alone: a seed has things that there is one of."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def place(garden: Garden, seed_cluster: Cluster) -> Iterator[SeedPlace]:
    """With a resource manager."""
    place = SeedPlace(garden, seed_cluster)
    with place.resource_manager():
        yield place
        place.remove()


def deployed(place: SeedPlace) -> set[str]:
    """The components that there are, by their ManagedResources."""
    listed = place.cluster.api.get(MANAGED_RESOURCES.path(namespace=GARDEN))["items"]
    return {metadata(each)["name"] for each in listed} & NAMES


def images(place: SeedPlace, namespace: str = GARDEN) -> dict[str, str]:
    """Of the first container of each Deployment."""
    listed = place.cluster.api.get(DEPLOYMENTS.path(namespace=namespace))["items"]
    return {metadata(each)["name"]: each["spec"]["template"]["spec"]["containers"][0]["image"] for each in listed}


def listed(place: SeedPlace, resource: Resource) -> list[Object]:
    """What there is in the namespace of the seed's components."""
    return list(place.cluster.api.get(resource.path(namespace=GARDEN))["items"])


def got(place: SeedPlace, resource: Resource, name: str) -> Object:
    found: Object = place.cluster.api.get(resource.path(namespace=GARDEN, name=name))
    return found


def of_config(place: SeedPlace, name: str) -> list[str]:
    """Secrets of the secrets manager."""
    return [metadata(each)["name"] for each in listed(place, SECRETS) if labels(each).get("name") == name]


def are_applied(place: SeedPlace) -> bool:
    """The Prometheus servers, with all that they read."""
    servers = {metadata(each)["name"]: each["spec"]["version"] for each in listed(place, PROMETHEUSES)}
    read = {resource.kind: len(listed(place, resource)) for resource in READ}
    return servers == dict.fromkeys(("aggregate", "cache", "seed"), "v2.54.1") and read == READ_COUNT


def assert_is_protected(place: SeedPlace, ingress: Object, *, host: str) -> None:
    """By a password, and a certificate of the seed."""
    assert [each["host"] for each in ingress["spec"]["rules"]] == [host]
    assert annotations(ingress)["nginx.ingress.kubernetes.io/auth-secret"] == "seed-monitoring"
    (tls,) = ingress["spec"]["tls"]
    certificate = base64.b64decode(got(place, SECRETS, tls["secretName"])["data"]["tls.crt"])
    (loaded,) = load_certificates(certificate)
    assert (tls["hosts"], profile_of(loaded).names) == ([host], (host,))


@contextmanager
def wildcard_certificate(place: SeedPlace) -> Iterator[str]:
    """For all names below the domain of the seed; the name of its Secret."""
    meta = {"name": "wildcard", "labels": {"gardener.cloud/role": "controlplane-cert"}}
    place.cluster.api.create(SECRETS.path(namespace=GARDEN), {"metadata": meta})
    yield "wildcard"
    place.cluster.api.delete(SECRETS.path(namespace=GARDEN, name="wildcard"))


def certificates(place: SeedPlace) -> set[str]:
    """Secrets of what people reach."""
    return {tls["secretName"] for each in listed(place, INGRESSES) for tls in each["spec"]["tls"]}


def defined_by_gardenlet(place: SeedPlace) -> set[str]:
    """Names of its definitions for monitoring."""
    found = place.cluster.api.get(CUSTOM_RESOURCE_DEFINITIONS.path())["items"]
    component = "gardenlet.gardener.cloud/component"
    return {metadata(each)["name"] for each in found if annotations(each).get(component, "").endswith("-monitoring")}


async def test_components_are_deployed_kept_and_removed(place: SeedPlace) -> None:
    async with place.gardenlet(declare, **WITH_ALL):
        await asyncio.to_thread(place.finished)
        assert deployed(place) == NAMES - WITHOUT_MANAGED_RESOURCE
        expected = {
            "etcd-druid": "druid",
            "kube-state-metrics-seed": "metrics",
            "nginx-ingress-controller": "nginx",
            "nginx-ingress-k8s-backend": "backend",
            "plutono": "plutono",
            "prometheus-operator": "operator",
            "reversed-vpn-auth-server": "authorization",
            "vpa-admission-controller": "admission",
            "vpa-recommender": "recommender",
            "vpa-updater": "updater",
        }
        await asyncio.to_thread(
            eventually,
            lambda: images(place) == expected,
            "the resource manager to apply all",
            state=lambda: images(place),
        )
        for secret, deployment in USED.items():
            assert of_config(place, secret)[0] in str(got(place, DEPLOYMENTS, deployment)["spec"]["template"])
        await asyncio.to_thread(eventually, lambda: are_applied(place), "the Prometheus servers")
        for name, letter in {"plutono": "g", "prometheus-aggregate": "p"}.items():
            assert_is_protected(
                place, got(place, INGRESSES, name), host=f"{letter}-seed.ingress.{place.name}.example.com"
            )
        assert got(place, CONFIG_MAPS, "plutono-dashboards")["data"]
        with closing(place.cluster.audit()) as audit:
            await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
            assert changing(audit.calls(user_agent=f"gardenlet/seed-of-{place.name}")) == []
        with wildcard_certificate(place) as name:
            await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
            await asyncio.to_thread(
                eventually, lambda: certificates(place) == {name}, state=lambda: certificates(place)
            )
            assert of_config(place, "plutono-tls") == []

    # Another process, which is to leave them out.
    async with place.gardenlet(declare):
        await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
        assert deployed(place) == set()
        assert [each for secret in USED for each in of_config(place, secret)] == []
        assert place.find(CONFIG_MAPS.path(namespace=GARDEN, name="plutono-dashboards")) is None
        await asyncio.to_thread(eventually, lambda: not images(place), "Deployments to go", state=lambda: images(place))
        assert not listed(place, PROMETHEUSES)
        assert defined_by_gardenlet(place), "objects of others may need the definitions"


async def test_what_another_gardenlet_has_deployed_is_not_removed(place: SeedPlace) -> None:
    theirs = MANAGED_RESOURCES.path(namespace=GARDEN, name="etcd-druid")
    body = {
        **MANAGED_RESOURCES.type_meta,
        "metadata": {"name": "etcd-druid"},
        "spec": {"class": "seed", "secretRefs": []},
    }
    async with place.gardenlet(declare):
        await asyncio.to_thread(place.finished)
        place.cluster.api.create(MANAGED_RESOURCES.path(namespace=GARDEN), body)
        await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
        assert "gardenlet.gardener.cloud/component" not in annotations(place.cluster.api.get(theirs))
    async with place.gardenlet(declare, **WITH_ALL):
        await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
        assert annotations(place.cluster.api.get(theirs))["gardenlet.gardener.cloud/component"]


async def test_definitions_of_others_stay_as_they_are(place: SeedPlace) -> None:
    path = CUSTOM_RESOURCE_DEFINITIONS.path(name=OTHERS)
    if place.find(path) is not None:
        place.cluster.api.delete(path)
        await soon(lambda: place.find(path) is None, "the definition to go")
    theirs = place.cluster.api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), definition(PROMETHEUSES))
    async with place.gardenlet(declare, images=IMAGES, omit=all_but("prometheus-operator")):
        await asyncio.to_thread(place.finished)
        assert place.cluster.api.get(path)["spec"] == theirs["spec"]
        assert len(defined_by_gardenlet(place) - {OTHERS}) == 9
        place.garden.delete(CONTROLLER_INSTALLATIONS, place.name)
        place.garden.delete(SEEDS, place.name)
        await soon(lambda: is_gone(place), "the Seed to go", state=lambda: place.operation)
    assert defined_by_gardenlet(place) == set()
    assert metadata(place.cluster.api.get(path))["uid"] == metadata(theirs)["uid"]
    place.cluster.api.delete(path)


def is_gone(place: SeedPlace) -> bool:
    try:
        return not place.seed
    except NotFound:
        return True


# --- Istio


WITH_ISTIO = {"images": IMAGES, "omit": all_but("istio")}
ISTIO_SYSTEM, ISTIO_INGRESS, GATEWAY = "istio-system", "istio-ingress", "istio-ingressgateway"
RECORD = DNS_RECORDS.path(namespace=GARDEN, name="seed-ingress")


@asynccontextmanager
async def others_at_work(place: SeedPlace) -> AsyncIterator[None]:
    """The gateway gets an address, and the DNSRecord an answer."""
    service = SERVICES.path(namespace=ISTIO_INGRESS, name=GATEWAY)

    def play() -> None:
        if (found := place.find(service)) and not at(found, "status", "loadBalancer", "ingress"):
            address = {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}
            place.cluster.api.patch(f"{service}/status", {"status": address})
        if (found := place.find(RECORD)) and "gardener.cloud/operation" in annotations(found):
            place.cluster.api.patch(RECORD, {"metadata": {"annotations": {"gardener.cloud/operation": None}}})
            operation = {
                "type": "Create",
                "state": "Succeeded",
                "progress": 100,
                "lastUpdateTime": format_time(utc_now()),
                "description": "Done.",
            }
            status = {"lastOperation": operation, "observedGeneration": metadata(found)["generation"]}
            place.cluster.api.patch(f"{RECORD}/status", {"status": status})

    async def play_on() -> None:
        while True:
            with suppress(NotFound, Conflict):
                await asyncio.to_thread(play)
            await asyncio.sleep(0.2)

    playing = asyncio.create_task(play_on())
    try:
        yield
    finally:
        playing.cancel()


@pytest.fixture
def credentials(place: SeedPlace) -> Object:
    """Of the DNS provider, in the garden."""
    name = at(place.seed, "spec", "dns", "provider", "secretRef", "name")
    content = {"stringData": {"token": "secret"}}
    with suppress(AlreadyExists):  # of another test, which may have left it empty
        place.garden.create(SECRETS, name, namespace=GARDEN)
    return place.garden.patch(SECRETS, name, content, namespace=GARDEN)


def gateway_images(place: SeedPlace) -> dict[str, str]:
    return images(place, ISTIO_SYSTEM) | images(place, ISTIO_INGRESS)


async def test_the_way_in_is_deployed_kept_and_removed(place: SeedPlace, credentials: Object) -> None:
    domain = f"*.ingress.{place.name}.example.com"
    async with others_at_work(place), place.gardenlet(declare, **WITH_ISTIO):
        await asyncio.to_thread(place.finished)
        assert gateway_images(place) == {"istiod": "discovery", GATEWAY: "proxy"}
        record = place.cluster.api.get(RECORD)["spec"]
        assert (record["name"], record["recordType"], record["values"]) == (domain, "A", ["192.0.2.7"])
        copy = place.cluster.api.get(SECRETS.path(namespace=GARDEN, name="seed-ingress"))
        assert copy["data"] == credentials["data"]
        namespace = labels(place.cluster.api.get(NAMESPACES.path(name=ISTIO_INGRESS)))
        assert namespace["gardener.cloud/role"] == "istio-ingress"
        with closing(place.cluster.audit()) as audit:
            await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
            assert changing(audit.calls(user_agent=f"gardenlet/seed-of-{place.name}")) == []

    async with place.gardenlet(declare):
        await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
        assert place.find(RECORD) is None
        assert place.find(SECRETS.path(namespace=GARDEN, name="seed-ingress")) is None
        await asyncio.to_thread(
            eventually,
            lambda: place.find(NAMESPACES.path(name=ISTIO_INGRESS)) is None,
            "the namespace to go",
            state=lambda: place.find(NAMESPACES.path(name=ISTIO_INGRESS)),
        )
        with closing(place.cluster.audit()) as audit:
            await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
            calls = audit.calls(user_agent=f"gardenlet/seed-of-{place.name}")
            assert not [each for each in calls if "istio" in each.uri or "dnsrecords" in each.uri]


async def test_namespaces_of_others_stay(place: SeedPlace, credentials: Object) -> None:
    path = NAMESPACES.path(name=ISTIO_SYSTEM)
    await asyncio.to_thread(eventually, lambda: place.find(path) is None, "an older namespace to go")
    place.cluster.api.create(NAMESPACES.path(), {"metadata": {"name": ISTIO_SYSTEM, "labels": {"theirs": "true"}}})
    async with others_at_work(place), place.gardenlet(declare, **WITH_ISTIO):
        await asyncio.to_thread(place.finished)
        expected = {"theirs": "true", "gardener.cloud/role": "istio-system"}
        assert labels(place.cluster.api.get(path)).items() >= expected.items()
    async with place.gardenlet(declare):
        await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
        assert not is_deleting(place.cluster.api.get(path))
    place.cluster.api.delete(path)


HANDLER_NAMESPACE = f"{ISTIO_INGRESS}-handler-inner"


def gateways(place: SeedPlace) -> set[str]:
    """The namespaces in which there is one."""
    listed = place.cluster.api.get(DEPLOYMENTS.path())["items"]
    return {metadata(each)["namespace"] for each in listed if metadata(each)["name"] == GATEWAY}


def lead_through(place: SeedPlace, namespace: str) -> str:
    """A Shoot, as its gardenlet does. Returns the path of what it has there."""
    shoot = f"shoot--{place.name}--a"
    with suppress(AlreadyExists):
        place.cluster.api.create(NAMESPACES.path(), {"metadata": {"name": shoot}})
    made = place.cluster.api.get(NAMESPACES.path(name=shoot))
    owner = {**NAMESPACES.type_meta, "name": shoot, "uid": metadata(made)["uid"]}
    path = ENVOY_FILTERS.path(namespace=namespace)
    place.cluster.api.create(
        path, {**ENVOY_FILTERS.type_meta, "metadata": {"name": shoot, "ownerReferences": [owner]}, "spec": {}}
    )
    return f"{path}/{shoot}"


async def test_zones_and_handlers_have_gateways_for_as_long_as_shoots_need_them(
    place: SeedPlace, credentials: Object
) -> None:
    handlers = (ExposureClassHandler(name="inner"),)
    usual = {ISTIO_INGRESS, f"{ISTIO_INGRESS}--a", f"{ISTIO_INGRESS}--b"}
    with_handler = usual | {HANDLER_NAMESPACE, f"{HANDLER_NAMESPACE}--a", f"{HANDLER_NAMESPACE}--b"}
    async with others_at_work(place), place.gardenlet(declare, **WITH_ISTIO, exposure_class_handlers=handlers):
        await asyncio.to_thread(place.finished)
        await asyncio.to_thread(eventually, lambda: gateways(place) == with_handler, "gateways everywhere")
    left = lead_through(place, HANDLER_NAMESPACE)
    async with others_at_work(place), place.gardenlet(declare, **WITH_ISTIO):
        failed = await asyncio.to_thread(place.finished, "Error", generation=place.operate("reconcile"))
        assert f"{HANDLER_NAMESPACE} was removed from exposureClassHandlers" in failed["description"]
        assert f"needed by shoot--{place.name}--a; add it again" in failed["description"]
        assert gateways(place) == with_handler
        place.cluster.api.delete(left)
        # A zone goes, and one Shoot is still reached there.
        left = lead_through(place, f"{ISTIO_INGRESS}--b")
        changed = place.place.patch(SEEDS, place.name, {"spec": {"provider": {"zones": ["a"]}}})
        await asyncio.to_thread(place.finished, generation=metadata(changed)["generation"])
        kept = {ISTIO_INGRESS, f"{ISTIO_INGRESS}--b"}
        await asyncio.to_thread(eventually, lambda: gateways(place) == kept, "others to go")
        place.cluster.api.delete(left)
        await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
        await asyncio.to_thread(eventually, lambda: gateways(place) == {ISTIO_INGRESS}, "the one of the zone to go")
