"""A Shoot that the original has left is taken over: no key, no certificate and no roll-out is new."""

import asyncio
import base64
from collections.abc import Iterator
from datetime import timedelta

import pytest

from agent.gardenlet.common.secrets_manager import SecretsManager
from agent.gardenlet.shoot.main.controller import declare
from components import registry
from components.etcd import ROLES
from components.secrets.configs import BUNDLE
from components.secrets.shoot_rotation import rotations
from components.secrets.tables import (
    CA,
    ENCRYPTION_KEY,
    SERVICE_ACCOUNT_KEY,
    ControlPlane,
    authorities_of_a_shoot,
    generic_token_kubeconfig,
    static_tokens,
)
from config.gardenlet.schema import Monitoring, ShootMonitoring
from conformance.seed_objects import differences, unhashed
from conformance.shoot_as_left import ROTATED, AsLeft
from conformance.shoot_objects import CREATED, NAMESPACE, moments, status_of_the_shoot
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from devcluster.testing.faults import Foreign, Rule
from devcluster.testing.proxy import FaultProxy
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.api.extensions import DNS_RECORDS, EXTENSIONS
from gardener.api.garden import SHOOTS
from gardener.api.kinds import (
    DESTINATION_RULES,
    GATEWAYS,
    MANAGED_RESOURCES,
    VERTICAL_POD_AUTOSCALERS,
    VIRTUAL_SERVICES,
)
from kit.eventually import soon
from kit.objects import KINDS as BUILT_IN
from kit.played_shoots import PlayedPlace
from kit.processes.webhooks import WebhookProcess
from kit.world import WRITES, World, connected
from kube.clock import format_time
from kube.objects import Object, labels, metadata
from kube.resources import (
    CONFIG_MAPS,
    MUTATING_WEBHOOKS,
    SECRETS,
)
from kube.runtime.connection import load_kubeconfig

PROGRAM = "takes-over"
PLANE = ControlPlane(
    namespace=NAMESPACE,
    domains=("api.a.local.internal.example.com", "a.local.external.example.com", "api.a.local.external.example.com"),
    service_addresses=("10.4.0.1",),
)


def status(moment: str) -> Object:
    """Of the Shoot, with the times of its rotations."""
    found = status_of_the_shoot(moment)
    rotation = {
        name: {field: format_time(ROTATED) if field.endswith("Time") else value for field, value in each.items()}
        for name, each in found.get("credentials", {}).get("rotation", {}).items()
    }
    return {**found, "credentials": {"rotation": rotation}}


async def generate_all(manager: SecretsManager, moment: str) -> None:
    """As a pass over the Shoot does."""
    rotation = rotations({"status": status(moment)}, has_static_kubeconfig=False)
    await asyncio.gather(
        *(manager.generate(each, old=rotation.old(each)) for each in authorities_of_a_shoot(has_workers=False))
    )
    bundle = manager.get(CA.name).bundle
    assert bundle is not None
    others = (
        SERVICE_ACCOUNT_KEY,
        ENCRYPTION_KEY,
        static_tokens(has_cluster_admin=False),
        generic_token_kubeconfig(NAMESPACE, bundle.data[BUNDLE]),
        *registry.secrets(PLANE),
    )
    await asyncio.gather(*(manager.generate(each, old=rotation.old(each)) for each in others))


def configs() -> list[str]:
    fixed = (SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY, static_tokens(has_cluster_admin=False))
    return [each.name for each in (*authorities_of_a_shoot(has_workers=False), *fixed)]


@pytest.mark.parametrize("moment", moments())
async def test_its_keys_and_certificates_are_used_as_they_are(
    moment: str, cluster: Cluster, world: World, audit: Audit
) -> None:
    for each in AsLeft(moment=moment).secrets():
        await world.create(each)
    before = {metadata(each)["name"]: each for each in await world.list("Secret")}
    rotation = rotations({"status": status(moment)}, has_static_kubeconfig=False)
    requested = rotation.requested((*authorities_of_a_shoot(has_workers=False), SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY))
    mark = audit.mark()
    async with connected(cluster, f"{PROGRAM}/1") as own:
        manager = await SecretsManager.open(
            own, world.namespace, clock=lambda: ROTATED + timedelta(days=1), requested=requested
        )
        await generate_all(manager, moment)
        await manager.clean_up()
    assert {metadata(each)["name"]: each for each in await world.list("Secret")} == before
    assert not audit.calls(since=mark, user_agent=f"{PROGRAM}/", namespace=world.namespace, verbs=WRITES)


# --- a pass over a whole Shoot

KINDS = BUILT_IN | {
    each.kind: each
    for each in (
        DESTINATION_RULES,
        DNS_RECORDS,
        ETCDS,
        EXTENSIONS,
        GATEWAYS,
        MANAGED_RESOURCES,
        VERTICAL_POD_AUTOSCALERS,
        VIRTUAL_SERVICES,
    )
}
WEBHOOK = "high-availability"
NO_MONITORING = Monitoring(shoot=ShootMonitoring(enabled=False))
"""As it was recorded."""
_CONFIGURATION = "the configuration states what this project's needs, and by its content the file is named"
_EMPTY = "nothing follows from it: the operator takes what is empty as what is missing"
_PACKED = "the same objects, packed otherwise"
CHANGED: dict[str, dict[str, str]] = {
    "Deployment/gardener-resource-manager": {
        "template/metadata/annotations/reference.resources.gardener.cloud/configmap-<hash>": _CONFIGURATION,
        "template/spec/volumes/2/configMap/name": _CONFIGURATION,
        "template/spec/containers/0/image": "the image is this project's",
        "template/spec/containers/0/resources/requests/memory": "what a process of this project uses",
    },
    **{f"Etcd/etcd-{role}": dict.fromkeys(("schedulingConstraints", "sharedConfig"), _EMPTY) for role in ROLES},
    **{
        f"ManagedResource/{name}": {"secretRefs/0/name": _PACKED}
        for name in (
            "kube-apiserver-sni",
            "referenced-resources",
            "shoot-core-cluster-identity",
            "shoot-core-gardener-resource-manager",
            "shoot-core-namespaces",
            "shoot-core-system",
        )
    },
    "VerticalPodAutoscaler/gardener-resource-manager-vpa": {
        "resourcePolicy/containerPolicies/0/minAllowed/memory": "what a process of this project uses"
    },
}
"""Object -> path in its spec -> why it changes. No other object of the namespace does, nor do other pods."""
CREATED_BESIDE = {
    "ConfigMap/gardener-resource-manager-<hash>",
    *(
        f"Secret/managedresource-{name.removeprefix('ManagedResource/')}-<hash>"
        for name in CHANGED
        if "/shoot" in name or "/kube" in name
    ),
    "Secret/referenced-resources-<hash>",
}


@pytest.fixture(scope="module")
def place(devcluster_run: object) -> Iterator[PlayedPlace]:
    with Cluster() as own:
        yield PlayedPlace(own)


@pytest.fixture(scope="module")
def webhook(place: PlayedPlace) -> Iterator[None]:
    """Of the resource manager of the seed: it adds to Deployments what the recorded ones have of it."""
    with WebhookProcess({"highAvailabilityConfig": {"enabled": True}}, kubeconfig=place.cluster.kubeconfig) as server:
        server.wait_until_ready()
        bundle = base64.b64encode(server.certificate).decode()
        rule = {
            "apiGroups": ["apps", "autoscaling"],
            "apiVersions": ["*"],
            "resources": ["deployments", "statefulsets", "horizontalpodautoscalers"],
            "operations": ["CREATE", "UPDATE"],
        }
        requested = {
            "name": "high-availability.example.com",
            "clientConfig": {"url": f"{server.url}/webhooks/high-availability-config", "caBundle": bundle},
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {keys.HIGH_AVAILABILITY_CONSIDER: "true"}},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        place.garden.create(MUTATING_WEBHOOKS, WEBHOOK, webhooks=[requested])
        yield


def leave(place: PlayedPlace) -> None:
    """The Shoot and its namespace, as the original left them."""
    recorded = AsLeft(moment=CREATED).shoot()
    place.garden.create(SECRETS, "some-resource", namespace="garden-local", stringData={"a": "b"})
    meta = {name: recorded["metadata"][name] for name in ("annotations", "labels", "finalizers")}
    shoot_uid = metadata(place.create_shoot("a", recorded["spec"], **meta))["uid"]
    api = place.cluster.api

    def create(obj: Object) -> Object:
        name = metadata(obj)
        resource = KINDS[obj["kind"]]
        return api.create(resource.path(namespace=name.get("namespace", "")), obj)

    first = AsLeft(moment=CREATED, shoot_uid=shoot_uid)
    service = {}
    for each in first.others():
        if each["kind"] == "Namespace":
            create(each)
        if (each["kind"], metadata(each)["name"]) == ("Service", "kube-apiserver"):
            service = create(without_address(each))
    left = AsLeft(moment=CREATED, shoot_uid=shoot_uid, seed_uid=place.seed_uid, cluster_ip=service["spec"]["clusterIP"])
    for each in left.others():
        if is_created(each):
            create(without_address(each))
    for each in left.secrets():
        create({**each, "metadata": {**metadata(each), "namespace": NAMESPACE}})
    status = {**left.status(), "uid": shoot_uid}
    status["clusterIdentity"] = f"{NAMESPACE}-{shoot_uid}-test"
    status["gardener"] = {"id": "id", "name": "original", "version": "v1.104.3"}
    place.garden.patch(SHOOTS, "a", {"status": status}, namespace="garden-local", status=True)


def without_address(obj: Object) -> Object:
    if obj["kind"] != "Service" or obj["spec"].get("clusterIP") == "None":
        return obj
    left = {name: value for name, value in obj["spec"].items() if name not in {"clusterIP", "clusterIPs"}}
    return {**obj, "spec": left}


_NOT_SERVED = {"PrometheusRule", "ServiceMonitor"}
_THERE = {"Namespace", "ServiceAccount/default", "Service/kube-apiserver"}


def is_created(obj: Object) -> bool:
    names = {obj["kind"], f"{obj['kind']}/{metadata(obj)['name']}"}
    return not names & (_NOT_SERVED | _THERE) and metadata(obj).get("namespace") == NAMESPACE


def state(place: PlayedPlace) -> dict[str, Object]:
    """What is in the namespace, by kind and name."""
    kinds = {each["kind"] for each in AsLeft(moment=CREATED).others()} - _NOT_SERVED - {"Namespace", "BackupEntry"}
    found = {}
    for resource in (KINDS[kind] for kind in kinds):
        for each in place.cluster.api.get(resource.path(namespace=NAMESPACE))["items"]:
            found[f"{resource.kind}/{metadata(each)['name']}"] = each
    return found


def changed(before: Object, after: Object) -> set[str]:
    """Paths in the spec, and what identifies the object."""
    found = {unhashed(path) for path, *_ in differences(after.get("spec", {}), before.get("spec", {}))}
    same = ("uid", "name", "deletionTimestamp")
    found |= {name for name in same if metadata(after).get(name) != metadata(before).get(name)}
    return found | {f"labels/{name}" for name, value in labels(before).items() if labels(after).get(name) != value}


def is_reconciled(place: PlayedPlace) -> bool:
    status = place.shoot()["status"]
    last = status["lastOperation"]
    return status["gardener"]["name"] == "test" and (last["type"], last["state"]) == ("Reconcile", "Succeeded")


async def reconcile(place: PlayedPlace) -> None:
    version = Foreign(name="version", code=200, content_type="application/json", text='{"gitVersion": "v1.30.14"}')
    own = place.cluster
    async with FaultProxy(upstream=own.url, upstream_ca=own.ca, authority=own.authority) as proxy, place.player():
        proxy.rules.add(Rule(fault=version, path="^/version$"))
        proxy.write_kubeconfig(path := own.state / "shoot.kubeconfig", token=own.token)
        async with place.gardenlet(declare, shoots=load_kubeconfig(path), monitoring=NO_MONITORING):
            await soon(lambda: is_reconciled(place), "the Shoot to be reconciled", state=place.shoot)


@pytest.mark.usefixtures("webhook")
async def test_a_pass_over_it_makes_no_key_and_rolls_nothing_out(place: PlayedPlace) -> None:
    leave(place)
    before = state(place)
    await reconcile(place)
    after = state(place)
    # What it finds by its names, the original would find as well.
    assert before.keys() <= after.keys()
    found = {name: changed(obj, after[name]) for name, obj in before.items()}
    assert {name: paths for name, paths in found.items() if paths} == {name: {*CHANGED[name]} for name in CHANGED}
    assert {unhashed(name) for name in after.keys() - before.keys()} == CREATED_BESIDE
    for name, obj in before.items():
        if labels(obj).get("managed-by") == "secrets-manager":
            assert after[name] == obj, name
    published = place.garden.get(CONFIG_MAPS, "a.ca-cluster", namespace="garden-local")["data"]["ca.crt"]
    assert base64.b64decode(before["Secret/ca"]["data"]["ca.crt"]).decode() == published
