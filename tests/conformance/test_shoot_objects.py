"""The objects that the gardenlet writes for a Shoot without workers are those of the original, but for what is listed.

Ours pass the webhook of the seed's resource manager, and are created in a dry run first: so they have what it adds, and
the defaults of an API server, as the recorded ones have. What is equal then is not rolled out when a Shoot is taken over
from the original.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import asdict

import pytest

from agent.gardenlet.shoot.main.rules.extensions import wanted
from components import (
    dns_records,
    etcd,
    gardener_access,
    kube_apiserver,
    referenced_resources,
    registry,
    shoot_backup_entry,
    shoot_exposure,
    shoot_namespace,
)
from components.control_plane import Running
from components.etcd_schedules import schedules
from components.inputs import Inputs
from config.resource_manager import decode
from conformance.seed_objects import (
    Name,
    Stored,
    by_name,
    differences,
    found_differences,
    normal,
    stored_by,
    unhashed,
    valid,
)
from conformance.shoot_objects import (
    CREATED,
    HIBERNATED,
    NAMESPACE,
    in_the_garden,
    managed_resources,
    moments,
    others,
    status_of_the_shoot,
)
from conformance.written_objects import is_of_managed_resource, readable, with_availability
from devcluster.cluster import Cluster
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.plan import data_of
from kit import shoot_inputs
from kit.shoot_inputs import secret_name
from kube.objects import Object, metadata
from localprocesses.pki import Authority

BUNDLE = Authority.create("ca").bundle.decode()
CONTENTS = {"ca-bundle": {"bundle.crt": BUNDLE.encode()}}
UID = "uid-29"
"""Chosen so that times that depend on it are the recorded ones."""
OLD_KEY, NEW_KEY = (kube_apiserver.Key(name, "<key>") for name in ("key1795692683", "key1795693649"))
KEYS: Mapping[str, list[kube_apiserver.Key]] = {
    "rotate-etcd-encryption-key-prepared": kube_apiserver.encryption_keys(NEW_KEY, OLD_KEY, encrypts_by_current=True),
    "rotate-etcd-encryption-key-completed": kube_apiserver.encryption_keys(NEW_KEY, None, encrypts_by_current=True),
}
INTERNAL_HOST, EXTERNAL_HOST = "api.a.local.internal.example.com", "api.a.local.external.example.com"
SEED: Object = {
    "metadata": {"name": "local"},
    "spec": {"provider": {"type": "local", "zones": ["0"]}, "backup": {"provider": "local"}},
}
Differences = Mapping[str, str]

# --- what is listed

_REVISION = "the controller of Deployments sets it"
_MADE = "the API server sets it when the Namespace is made"
_ASKED = "clients that request something of the operator note the time"
_OPERATOR = "the operator's"
_EMPTY = "empty; the same if it is missing"
_REQUESTOR = "the requestor of tokens puts it in"
_EVICTIONS = "the controller of eviction requirements writes them"
_EXTENSION = "the extension's"
_MARK = "the flow notes how far it has got with new keys"
_NO_PODS = "the webhook spreads only what runs; here the original has only set the replicas"
_NO_MONITORING = "no monitoring of Shoots is deployed"
_OTHERS = "a controller of Kubernetes makes it"
_POLICIES = "the controller `network-policy` of the gardenlet makes it"
_IMAGE, _MEMORY = "the image is this project's", "what a process of this project uses"

_OF_ETCD = {
    "metadata/annotations": _ASKED,
    "metadata/finalizers": _OPERATOR,
    "spec/schedulingConstraints": _EMPTY,
    "spec/sharedConfig": _EMPTY,
}
_OF_EXTENSION = {"metadata/annotations": _ASKED, "metadata/finalizers": _EXTENSION}
_OF_RECORD = {"metadata/annotations/gardener.cloud/timestamp": _ASKED, "metadata/finalizers": _EXTENSION}
_OF_ACCESS = {
    "data": _REQUESTOR,
    "metadata/annotations/serviceaccount.resources.gardener.cloud/token-renew-timestamp": _REQUESTOR,
}
_REVISED = {"metadata/annotations/deployment.kubernetes.io/revision": _REVISION}
DIFFERENCES: Mapping[Name, Differences] = {
    Name("Namespace", NAMESPACE): {"metadata/labels/kubernetes.io/metadata.name": _MADE, "spec": _MADE},
    Name("Etcd", "etcd-main"): _OF_ETCD,
    Name("Etcd", "etcd-events"): _OF_ETCD,
    Name("VerticalPodAutoscaler", "etcd-main"): {"spec/updatePolicy/evictionRequirements": _EVICTIONS},
    Name("VerticalPodAutoscaler", "etcd-events"): {"spec/updatePolicy/evictionRequirements": _EVICTIONS},
    Name("Deployment", "kube-apiserver"): _REVISED,
    Name("Deployment", "kube-controller-manager"): {
        "metadata/annotations": _REVISION,
    },
    Name("Deployment", "gardener-resource-manager"): {
        **_REVISED,
        "spec/template/spec/containers/0/image": _IMAGE,
        "spec/template/spec/containers/0/resources/requests/memory": _MEMORY,
    },
    Name("VerticalPodAutoscaler", "gardener-resource-manager-vpa"): {
        "spec/resourcePolicy/containerPolicies/0/minAllowed/memory": _MEMORY
    },
    Name("Secret", "shoot-access-kube-controller-manager"): _OF_ACCESS,
    Name("Secret", "shoot-access-gardener-resource-manager"): _OF_ACCESS,
    Name("Secret", "gardener"): {name: why for name, why in _OF_ACCESS.items() if name != "data"},
    Name("Secret", "gardener-internal"): {name: why for name, why in _OF_ACCESS.items() if name != "data"},
    Name("Secret", "kube-apiserver-admission-kubeconfigs-<hash>"): {"data": _EMPTY},
    Name("DNSRecord", "a-internal"): _OF_RECORD,
    Name("DNSRecord", "a-external"): _OF_RECORD,
    Name("Extension", "ext-before"): _OF_EXTENSION,
    Name("Extension", "ext-after"): _OF_EXTENSION,
}
"""Object -> path -> reason, at every moment."""
MORE_DIFFERENCES: Mapping[str, Mapping[Name, Differences]] = {
    HIBERNATED: {
        Name("Deployment", name): {"spec/template/spec/topologySpreadConstraints": _NO_PODS}
        for name in ("kube-apiserver", "gardener-resource-manager")
    },
    "rotate-etcd-encryption-key-prepared": {
        Name("Deployment", "kube-apiserver"): {
            f"metadata/annotations/credentials.gardener.cloud/{mark}": _MARK
            for mark in ("etcd-snapshotted", "new-encryption-key-populated", "resources-labeled")
        }
    },
}
"""At one of them."""
CONFIGURED_OTHERWISE: Mapping[str, str] = {
    "controllers/csr_approver/concurrent_syncs": "nothing reads it while the approver is off",
    "controllers/csr_approver/machine_namespace": "nothing reads it while the approver is off",
    "controllers/managed_resource/always_update": "what differs is written anyway; nothing else has to be",
    "controllers/node_agent_reconciliation_delay/enabled": "there are no nodes",
    "webhooks/kubernetes_service_host/host": "nothing reads it while the webhook is off",
    "webhooks/system_components_config/node_selector/worker.gardener.cloud/system-components": "the same",
    "webhooks/system_components_config/pod_node_selector/worker.gardener.cloud/system-components": "the same",
}
"""Path in the configuration of the resource manager -> why it is another one."""
NOT_WRITTEN: Mapping[Name, str] = {
    Name("BackupEntry", f"{NAMESPACE}--<uid>"): "the controller of BackupEntries makes it",
    Name("ServiceAccount", "default"): _OTHERS,
    Name("Secret", "etcd-backup"): "the extension for BackupEntries makes it",
    Name("Secret", "ref-some-resource"): "the resource manager of the seed makes it, see `referenced-resources`",
    Name("Service", "etcd-main-client"): _OPERATOR,
    Name("Service", "etcd-events-client"): _OPERATOR,
    **{
        Name(kind, f"shoot-{name}"): _NO_MONITORING
        for kind in ("PrometheusRule", "ServiceMonitor")
        for name in ("etcd-events", "etcd-main", "kube-apiserver", "kube-controller-manager")
    },
    Name("ServiceMonitor", "shoot-gardener-resource-manager"): _NO_MONITORING,
    **{
        Name("NetworkPolicy", name): _POLICIES
        for name in (
            "allow-to-blocked-cidrs",
            "allow-to-dns",
            "allow-to-private-networks",
            "allow-to-public-networks",
            "allow-to-runtime-apiserver",
            "deny-all",
        )
    },
}
_UNSERVED = "the webhook is off in a Shoot without workers: calls would be refused"
IN_THE_SHOOT: Mapping[Name, Differences] = {
    Name("MutatingWebhookConfiguration", "gardener-resource-manager-shoot"): {
        "metadata/namespace": "the kind has no namespaces",
        **{f"webhooks/{number}": _UNSERVED for number in range(1, 6)},
    },
    Name("Namespace", "kube-system"): {"spec": _EMPTY},
}
"""As `DIFFERENCES`, of what ManagedResources have."""

# --- what is written


def shoot(moment: str) -> Object:
    """As it was then, with a uid."""
    found: Object = in_the_garden(moment)[Name("Shoot", "a")]
    status = {"technicalID": NAMESPACE, "uid": UID}
    return {**found, "metadata": {**found["metadata"], "uid": UID}, "status": status}


def api_server(moment: str) -> kube_apiserver.Values:
    given = kube_apiserver.Given(
        encryption=kube_apiserver.Encryption(keys=KEYS.get(moment, [OLD_KEY])),
        health_token="token",
        settings=shoot(moment)["spec"]["kubernetes"]["kubeAPIServer"],
    )
    return kube_apiserver.values_of(inputs(moment), given)


def running(moment: str) -> Running:
    return Running.ASLEEP if moment == HIBERNATED else Running.AWAKE


def etcds(moment: str) -> Iterator[Object]:
    entry = shoot_backup_entry.name(shoot(moment))
    for role in etcd.ROLES:
        values = etcd.Values(
            namespace=NAMESPACE,
            role=role,
            certificates=etcd.Certificates(
                ca=secret_name("ca-etcd-bundle"),
                server=secret_name(f"etcd-server-{role}"),
                client=secret_name("etcd-client"),
            ),
            schedules=schedules(shoot(moment)),
            store=etcd.Store(entry=entry, bucket="uid", provider="local") if role == etcd.MAIN else None,
            window=shoot(moment)["spec"]["maintenance"]["timeWindow"],
            running=running(moment),
        )
        yield from etcd.objects(values)


def inputs(moment: str) -> Inputs:
    return shoot_inputs.inputs(
        shoot(moment),
        seed={**SEED, "status": {"clusterIdentity": "<uid>"}},
        namespace=NAMESPACE,
        host=INTERNAL_HOST,
        garden_identity="rig",
        cluster_ip="10.0.0.1",
        running=running(moment),
        images=shoot_inputs.NamedImages({"gardener-resource-manager": "resource-manager"}),
        secrets=shoot_inputs.NamedSecrets(CONTENTS),
    )


def access() -> gardener_access.Values:
    hosts = {
        name: gardener_access.server_of(name, host=INTERNAL_HOST, namespace=NAMESPACE) for name in gardener_access.NAMES
    }
    return gardener_access.Values(
        namespace=NAMESPACE, servers=hosts, ca_bundle=BUNDLE.encode(), tokens=dict.fromkeys(gardener_access.NAMES, "t")
    )


def records(moment: str) -> Iterator[Object]:
    hosts = {
        dns_records.INTERNAL: dns_records.internal_host("a", "local", "internal.example.com"),
        dns_records.EXTERNAL: dns_records.external_host(shoot(moment)["spec"]["dns"]["domain"]),
    }
    for role, host in hosts.items():
        values = dns_records.Values(
            namespace=NAMESPACE,
            shoot="a",
            role=role,
            host=host,
            addresses=["10.0.0.1"],
            provider="local",
            credentials={"token": b"t"},
            zone="zone-1",
        )
        yield dns_records.secret(values)
        if running(moment) is Running.AWAKE:
            yield dns_records.record(values)


def exposure(moment: str) -> list[Object]:
    values = shoot_exposure.Values(
        namespace=NAMESPACE, namespace_uid="uid", hosts=[INTERNAL_HOST, EXTERNAL_HOST], address="10.0.0.1"
    )
    return shoot_exposure.objects(values) if running(moment) is Running.AWAKE else []


def its_namespace(moment: str) -> Object:
    zones = shoot_namespace.zones_of(shoot(moment), SEED, live=None, volumes=[], choose=lambda zones: zones[0])
    return shoot_namespace.manifest(
        shoot_namespace.Values(
            name=NAMESPACE, shoot=shoot(moment), seed=SEED, zones=zones, extensions=["ext-after", "ext-before"]
        )
    )


def written(moment: str) -> Iterator[Object]:
    """All of it, with ManagedResources and their Secrets."""
    yield its_namespace(moment)
    yield from etcds(moment)
    yield kube_apiserver.service(NAMESPACE)
    yield from exposure(moment)
    yield from kube_apiserver.objects(api_server(moment))
    for component in registry.COMPONENTS:
        if not component.is_of_workers and component is not kube_apiserver.COMPONENT:
            yield from component.made(inputs(moment))
    yield from gardener_access.objects(access())
    yield from records(moment)
    yield from (each.manifest(NAMESPACE) for each in wanted(shoot(moment), []).values())
    referenced = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "some-resource"}, "type": "Opaque"}
    yield from referenced_resources.objects(NAMESPACE, [{**referenced, "data": {"a": encoded("b")}}])


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def stored(cluster: Cluster, namespace: str) -> Stored:
    return stored_by(cluster, namespace, as_they_are={"Namespace", "Secret"})


def expected(moment: str, ours: Mapping[Name, Object]) -> dict[Name, set[str]]:
    more = MORE_DIFFERENCES.get(moment, {})
    return {name: {*DIFFERENCES[name], *more.get(name, {})} for name in ours if name in DIFFERENCES}


# --- comparisons


@pytest.mark.parametrize("moment", moments())
def test_what_the_gardenlet_writes_into_the_seed(moment: str, stored: Stored) -> None:
    namespace = its_namespace(CREATED)
    ours = by_name(
        readable(stored(with_availability(obj, namespace=namespace)))
        for obj in written(moment)
        if not is_of_managed_resource(obj)
    )
    recorded = others(moment)
    assert found_differences(ours, recorded) == expected(moment, ours)
    missing = recorded.keys() - ours.keys()
    assert missing <= NOT_WRITTEN.keys()
    if moment == CREATED:
        assert missing == NOT_WRITTEN.keys()


@pytest.mark.parametrize("moment", moments())
def test_managed_resources_and_what_they_have(moment: str, stored: Stored) -> None:
    ours, recorded = [obj for obj in written(moment) if is_of_managed_resource(obj)], managed_resources(moment)
    secrets = {metadata(obj)["name"]: obj for obj in ours if obj["kind"] == "Secret"}
    managed = {metadata(obj)["name"]: obj for obj in ours if obj["kind"] == "ManagedResource"}
    assert managed.keys() == recorded.keys()
    for name, obj in managed.items():
        theirs = recorded[name]
        meta = {**theirs["metadata"], "name": name, "namespace": theirs["namespace"]}
        meta = {field: each for field, each in meta.items() if field != "finalizers"}  # the resource manager's
        assert not [*differences(normal(obj), normal({**obj, "metadata": meta, "spec": theirs["spec"]}))], name
        secret = secrets[obj["spec"]["secretRefs"][0]["name"]]
        (its_secret,) = theirs["secret"]
        assert unhashed(metadata(secret)["name"]) == unhashed(metadata(its_secret)["name"])
        assert metadata(secret)["labels"] == metadata(its_secret)["labels"]
        contents = by_name(stored(item.object) for item in decode_secrets([data_of(secret)]).objects)
        found = found_differences(
            contents, by_name(stored(valid(each, ca_bundle=BUNDLE)) for each in theirs["objects"])
        )
        assert found == {each: {*IN_THE_SHOOT[each]} for each in contents if each in IN_THE_SHOOT}, name


def test_the_resource_manager_is_configured_alike() -> None:
    """What has its default is left out of ours, so the files differ."""
    name = Name("ConfigMap", "gardener-resource-manager-<hash>")
    ours, recorded = (
        asdict(decode(objects[name]["data"]["config.yaml"]).config)
        for objects in (by_name(written(CREATED)), others(CREATED))
    )
    assert {path for path, *_ in differences(ours, recorded)} == CONFIGURED_OTHERWISE.keys()


def test_the_entry_of_backups_in_the_garden() -> None:
    ours = normal(shoot_backup_entry.entry(shoot(CREATED), bucket="uid", seed="local"))
    (recorded,) = (each for name, each in in_the_garden(CREATED).items() if name.kind == "BackupEntry")
    of_others = {"metadata/annotations/gardener.cloud/timestamp", "metadata/finalizers", "metadata/labels"}
    assert {path for path, *_ in differences(ours, recorded)} == of_others


def test_addresses_that_users_see() -> None:
    status = status_of_the_shoot(CREATED)
    issuer = kube_apiserver.issuer(api_server(CREATED))
    assert (
        dns_records.advertised(internal=INTERNAL_HOST, external=EXTERNAL_HOST, issuer=issuer)
        == status["advertisedAddresses"]
    )
