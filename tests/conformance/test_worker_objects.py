"""The objects that the gardenlet writes for a Shoot with workers are those of the original, but for what is listed.

As `test_shoot_objects`, of what only such a Shoot has.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from components import (
    kube_apiserver,
    registry,
    shoot_infrastructure,
    shoot_system,
)
from components.inputs import Inputs, Networks
from components.worker_pools import node_agent, operating_system, worker
from components.worker_pools.pools import HASHES, hashes, pools_of
from conformance import seed_objects
from conformance.seed_objects import (
    Name,
    by_name,
    differences,
    found_differences,
    normal,
    stored_by,
    valid,
)
from conformance.worker_objects import NAMESPACE, in_the_seed, managed_resources, shoot
from conformance.written_objects import is_of_managed_resource, readable, with_availability
from devcluster.cluster import Cluster
from gardener import keys
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.plan import data_of
from kit import shoot_inputs
from kube.objects import Object, metadata
from localprocesses.pki import Authority

BUNDLE = Authority.create("ca").bundle.decode()
HOST = "api.w.local.internal.example.com"
ADDRESS, POD_NETWORK, SERVICE_NETWORK, NODE_NETWORK = "10.5.0.1", "10.3.0.0/16", "10.4.0.0/16", "10.250.0.0/16"
NETWORKS = Networks(pods=POD_NETWORK, services=SERVICE_NETWORK, nodes=NODE_NETWORK)
STATUS = {"apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1", "kind": "InfrastructureStatus"}
RELEASES = "europe-docker.pkg.dev/gardener-project/releases"
IMAGES = {
    "cluster-autoscaler": f"{RELEASES}/gardener/autoscaler/cluster-autoscaler:v1.30.0",
    "machine-controller-manager": f"{RELEASES}/gardener/machine-controller-manager:v0.54.0",
    "gardener-resource-manager": "resource-manager",
    "apiserver-proxy": f"{RELEASES}/gardener/apiserver-proxy:v0.17.0",
    "coredns": "registry.k8s.io/coredns/coredns:v1.11.3",
    "envoy": f"{RELEASES}/3rd/envoyproxy/envoy-distroless:v1.31.1",
    "metrics-server": "registry.k8s.io/metrics-server/metrics-server:v0.7.2",
    "node-problem-detector": "registry.k8s.io/node-problem-detector/node-problem-detector:v0.8.19",
    "vpn-seed-server": f"{RELEASES}/gardener/vpn-seed-server:0.26.0",
    "vpn-shoot-client": f"{RELEASES}/gardener/vpn-shoot-client:0.26.0",
}
_CERTIFICATE = {"tls.crt": b"a", "tls.key": b"b"}
CONTENTS = {
    "ca-vpn-bundle": {"bundle.crt": b"a"},
    "metrics-server": _CERTIFICATE,
    "vpn-shoot-client": _CERTIFICATE,
    "vpn-seed-server-tlsauth": {"vpn.tlsauth": b"a"},
    **{f"{name}-bundle": {"bundle.crt": BUNDLE.encode()} for name in ("ca", "ca-metrics-server")},
}
_, IDENTITY, _ = shoot_system.COMPONENTS
MACHINES = {"name": f"{NAMESPACE}-pool-z1", "minimum": 1, "maximum": 2}
PROFILE: Object = {
    "metadata": {"name": "local"},
    "spec": {"machineTypes": [{"name": "local", "cpu": "1", "gpu": "0", "memory": "8Gi"}]},
}
Differences = Mapping[str, str]
ZONES = keys.HIGH_AVAILABILITY_ZONES
TOLERANCE = keys.HIGH_AVAILABILITY_FAILURE_TOLERANCE

# --- what is listed

_REVISION = "the controller of Deployments sets it"
_ASKED = "clients that request something of the extension note the time"
_EXTENSION = "the extension's"
_REQUESTOR = "the requestor of tokens puts it in"
_EMPTY = "empty; the same if it is missing"
_IMAGE, _MEMORY = "the image is this project's", "what a process of this project uses"
_KEYS = "another key"
_WORDS = "in other words"
_OTHERS = "another component's, which Shoots without workers have as well: see `test_shoot_objects`"

_REVISED = {"metadata/annotations/deployment.kubernetes.io/revision": _REVISION}
_FIRST_REVISED = {"metadata/annotations": _REVISION}
_OF_EXTENSION = {"metadata/annotations": _ASKED, "metadata/finalizers": _EXTENSION}
_TIME = "metadata/annotations/serviceaccount.resources.gardener.cloud/token-renew-timestamp"
_OF_ACCESS = {"data": _REQUESTOR, _TIME: _REQUESTOR}
DIFFERENCES: Mapping[Name, Differences] = {
    **{Name(kind, "w"): _OF_EXTENSION for kind in ("ControlPlane", "Network")},
    Name("Infrastructure", "w"): {**_OF_EXTENSION, "spec/sshPublicKey": _KEYS},
    Name("Worker", "w"): {
        **_OF_EXTENSION,
        "spec/sshPublicKey": _KEYS,
        "spec/pools/0/userData": "pools only refer to it, so that many of them fit into one object",
    },
    **{
        Name("OperatingSystemConfig", f"gardener-node-agent-pool-46fed-local-{name}"): _OF_EXTENSION
        for name in ("init", "original")
    },
    Name("ConfigMap", "gardener-resource-manager-<hash>"): {
        "data/config.yaml/controllers/managedResource/alwaysUpdate": "what differs is written anyway"
    },
    Name("Deployment", "kube-apiserver"): _REVISED,
    Name("Secret", "kube-apiserver-admission-kubeconfigs-<hash>"): {"data": _EMPTY},
    Name("Deployment", "kube-controller-manager"): _FIRST_REVISED,
    Name("Deployment", "kube-scheduler"): {
        **_REVISED,
        "spec/template/spec/containers/0/command/8": "an argument that is empty",
        "spec/template/spec/containers/0/command/9": "the one before it is empty",
    },
    Name("Deployment", "vpn-seed-server"): _REVISED,
    Name("Deployment", "cluster-autoscaler"): _FIRST_REVISED,
    Name("Deployment", "machine-controller-manager"): _FIRST_REVISED,
    Name("Deployment", "gardener-resource-manager"): {
        **_REVISED,
        "spec/template/spec/containers/0/image": _IMAGE,
        "spec/template/spec/containers/0/resources/requests/memory": _MEMORY,
    },
    Name("VerticalPodAutoscaler", "gardener-resource-manager-vpa"): {
        "spec/resourcePolicy/containerPolicies/0/minAllowed/memory": _MEMORY
    },
    **{
        Name("Secret", f"shoot-access-{name}"): _OF_ACCESS
        for name in (
            "cluster-autoscaler",
            "gardener-node-agent",
            "gardener-resource-manager",
            "kube-controller-manager",
            "kube-scheduler",
            "machine-controller-manager",
        )
    },
}
"""Object -> path -> reason."""
NOT_WRITTEN: Mapping[Name, str] = {
    **{
        Name("Secret", f"osc-result-gardener-node-agent-pool-46fed-local-{name}"): _EXTENSION
        for name in ("init", "original")
    },
    **{
        Name(kind, name): _OTHERS
        for kind, names in {
            "BackupEntry": [f"{NAMESPACE}--<uid>"],
            "DNSRecord": ["w-external", "w-internal"],
            "DestinationRule": ["kube-apiserver"],
            "Etcd": ["etcd-events", "etcd-main"],
            "Extension": ["ext-after", "ext-before"],
            "Gateway": ["kube-apiserver"],
            "Namespace": [NAMESPACE],
            "Secret": [
                "dnsrecord-w-external",
                "dnsrecord-w-internal",
                "etcd-backup",
                "gardener",
                "gardener-internal",
                "ref-some-resource",
            ],
            "Service": ["etcd-events-client", "etcd-main-client", "kube-apiserver"],
            "ServiceAccount": ["default"],
            "VerticalPodAutoscaler": ["etcd-events", "etcd-main"],
            "VirtualService": ["kube-apiserver"],
        }.items()
        for name in names
    },
}
NOT_MANAGED: Mapping[str, str] = {
    **dict.fromkeys(
        ("kube-apiserver-sni", "referenced-resources", "shoot-core-cluster-identity", "shoot-core-gardeneraccess"),
        _OTHERS,
    ),
    "shoot-core-kube-proxy-pool-v1.30": "it is empty: for a VerticalPodAutoscaler, where a Shoot has such",
}
NOT_IN_THE_SHOOT: Mapping[Name, str] = {
    Name("ConfigMap", "kube-proxy-conntrack-fix-script-<hash>"): "a remedy for kernels that are not supported any more",
}
_REFERENCE = "metadata/annotations/reference.resources.gardener.cloud/configmap kube-proxy-conntrack-fix-script-<hash>"
_DESCRIBED = {"metadata/annotations/gardener.cloud/description": _WORDS}
IN_THE_SHOOT: Mapping[Name, Differences] = {
    Name("MutatingWebhookConfiguration", "gardener-resource-manager-shoot"): {
        "metadata/namespace": "the kind has no namespaces"
    },
    Name("Namespace", "kube-system"): {"spec": _EMPTY},
    Name("Role", "gardener-node-agent"): {
        "rules/0/resourceNames/1": "of logs, which no one collects",
        "rules/0/resourceNames/2": "the one before it is of logs",
    },
    Name("RoleBinding", "gardener.cloud:target:cluster-autoscaler"): {
        "subjects/0/namespace": "a ServiceAccount without one is no subject"
    },
    Name("ConfigMap", "coredns-custom"): {f"data/changeme.{name}": _WORDS for name in ("override", "server")},
    Name("ConfigMap", "kube-proxy-cleanup-script-<hash>"): {"data/cleanup.sh": "recorded as its size"},
    Name("Secret", "vpn-shoot-tlsauth-<hash>"): {"data/vpn.tlsauth": _KEYS},
    Name("Service", "kube-proxy"): {"spec/ports/0/targetPort": _EMPTY},
    Name("DaemonSet", "kube-proxy-pool-v1.30.14"): {
        **{f"{path}{_REFERENCE}": "of a script that is not there" for path in ("", "spec/template/")},
        "spec/template/spec/containers/1": "the same",
        "spec/template/spec/volumes/8": "the same",
    },
    **{
        Name("NetworkPolicy", f"gardener.cloud--allow-{name}"): _DESCRIBED
        for name in (
            "dns",
            "from-seed",
            "to-apiserver",
            "to-dns",
            "to-kubelet",
            "to-public-networks",
            "vpn",
        )
    },
}
"""As `DIFFERENCES`, of what ManagedResources have."""

# --- what is written


def pool_config() -> operating_system.Values:
    (pool,) = pools_of(shoot(), PROFILE)
    return operating_system.Values(
        namespace=NAMESPACE,
        pool=pool,
        type="local",
        server=f"https://{HOST}",
        ca_bundle=BUNDLE.encode(),
        trusted=BUNDLE.encode(),
        kubelet_ca=BUNDLE.encode(),
        dns="10.4.0.10",
        images=operating_system.Images(
            pause="registry.k8s.io/pause:3.10",
            agent=f"{RELEASES}/gardener/node-agent:v1.104.3",
            kubelet=f"{RELEASES}/hyperkube:v1.30.14",
        ),
        public_keys=[b"ssh-rsa a"],
    )


def extensions() -> Iterator[Object]:
    yield shoot_infrastructure.credentials(NAMESPACE, {"key": base64.b64encode(b"b").decode()})
    yield shoot_infrastructure.infrastructure(inputs(), ssh_key="a")
    yield shoot_infrastructure.control_plane(inputs())
    yield shoot_infrastructure.network(inputs())
    yield hashes(NAMESPACE, [pool_config().pool])
    yield from operating_system.objects(pool_config())
    first, _ = operating_system.objects(pool_config())
    reference = {"name": f"osc-result-{metadata(first)['name']}", "key": "cloud_config"}
    yield worker.worker(
        worker.Values(
            namespace=NAMESPACE,
            name="w",
            type="local",
            region="local",
            secret=shoot_infrastructure.SECRET,
            ssh_key="a",
            status=STATUS,
            pools=[(pool_config().pool, reference)],
        )
    )


def inputs() -> Inputs:
    return shoot_inputs.inputs(
        shoot=shoot(),
        seed={"spec": {"networks": {"pods": "10.223.0.0/16"}}, "status": {"clusterIdentity": "<uid>"}},
        profile=PROFILE,
        namespace=NAMESPACE,
        host=HOST,
        images=shoot_inputs.NamedImages(IMAGES),
        secrets=shoot_inputs.NamedSecrets(CONTENTS, plain=["ca-kubelet"]),
        namespace_uid="uid",
        worker={"status": {"machineDeployments": [MACHINES]}},
        cluster_ip=ADDRESS,
        infrastructure={"status": {"nodesCIDR": NODE_NETWORK, "providerStatus": STATUS}},
        live={"coredns": (), "nodes": ()},
    )


def written() -> Iterator[Object]:
    yield from extensions()
    given = kube_apiserver.Given(
        encryption=kube_apiserver.Encryption(keys=[kube_apiserver.Key("key", "<key>")]),
        health_token="token",
        settings=shoot()["spec"]["kubernetes"]["kubeAPIServer"],
    )
    yield from kube_apiserver.objects(kube_apiserver.values_of(inputs(), given))
    for component in set(registry.COMPONENTS) - {kube_apiserver.COMPONENT, IDENTITY}:
        yield from component.made(inputs())
    yield from node_agent.objects(NAMESPACE, [(pool_config().pool, operating_system.objects(pool_config())[1])])


@pytest.fixture
def stored(cluster: Cluster, namespace: str) -> seed_objects.Stored:
    return stored_by(cluster, namespace, as_they_are={"Namespace", "Secret"})


@pytest.fixture
def stored_in_shoot(cluster: Cluster, namespace: str) -> seed_objects.Stored:
    """Services as they are: their addresses are of another network."""
    as_they_are = {"APIService", "Namespace", "Secret", "Service", "ServiceAccount"}
    return stored_by(cluster, namespace, as_they_are=as_they_are)


# --- comparisons


def test_what_the_gardenlet_writes_into_the_seed(stored: seed_objects.Stored) -> None:
    zones: Object = {"metadata": {"annotations": {ZONES: "0", TOLERANCE: ""}}}
    ours = by_name(
        readable(stored(with_availability(obj, namespace=zones)))
        for obj in written()
        if not is_of_managed_resource(obj)
    )
    recorded = in_the_seed()
    compared = {name: comparable(each) for name, each in recorded.items()}
    found = found_differences({name: comparable(each) for name, each in ours.items()}, compared)
    assert found == {name: {*DIFFERENCES[name]} for name in ours if name in DIFFERENCES}
    assert recorded.keys() - ours.keys() == NOT_WRITTEN.keys()


def test_managed_resources_and_what_they_have(stored_in_shoot: seed_objects.Stored) -> None:
    ours, recorded = [obj for obj in written() if is_of_managed_resource(obj)], managed_resources()
    secrets = {metadata(obj)["name"]: obj for obj in ours if obj["kind"] == "Secret"}
    managed = {metadata(obj)["name"]: obj for obj in ours if obj["kind"] == "ManagedResource"}
    assert recorded.keys() - managed.keys() == NOT_MANAGED.keys()
    for name, obj in managed.items():
        theirs = recorded[name]
        meta = {**theirs["metadata"], "name": name, "namespace": theirs["namespace"]}
        meta = {field: each for field, each in meta.items() if field != "finalizers"}  # the resource manager's
        assert not [*differences(normal(obj), normal({**obj, "metadata": meta, "spec": theirs["spec"]}))], name
        own = [secrets[each["name"]] for each in obj["spec"]["secretRefs"]]
        contents = by_name(
            readable(stored_in_shoot(item.object)) for item in decode_secrets([data_of(each) for each in own]).objects
        )
        wanted = by_name(
            readable(stored_in_shoot(valid(each, ca_bundle=BUNDLE))) for each in theirs["objects"] if is_whole(each)
        )
        assert wanted.keys() - contents.keys() <= NOT_IN_THE_SHOOT.keys(), name
        found = found_differences(
            {each: comparable(contents[each]) for each in contents.keys() & wanted.keys()},
            {each: comparable(wanted[each]) for each in wanted},
        )
        assert found == {each: {*IN_THE_SHOOT[each]} for each in contents if each in IN_THE_SHOOT}, name


def comparable(obj: Object) -> Object:
    """Without what is recorded as its size, and with files as what they report."""
    if obj["kind"] == "OperatingSystemConfig":
        spec = obj["spec"]
        units = [
            {**each, **({"content": settings(each["content"])} if "content" in each else {})} for each in spec["units"]
        ]
        return {**obj, "spec": {**spec, "units": units, "files": [without_content(each) for each in spec["files"]]}}
    if obj["kind"] == "ConfigMap" or obj["metadata"]["name"] == HASHES:
        return {**obj, "data": {name: reported(name, content) for name, content in obj["data"].items()}}
    return obj


def settings(unit: str) -> list[str]:
    """What is reported for people differs."""
    lines = [line.strip() for line in unit.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "Description=", "Documentation="))]


def without_content(file: Object) -> Object:
    inline = file["content"].get("inline")
    return {**file, "content": {"inline": inline if inline["encoding"] == "" else "b64"}} if inline else file


def reported(name: str, content: str) -> Any:
    return without_zeros(yaml.safe_load(content)) if name.endswith(".yaml") or name == "pools" else content


def without_zeros(value: Any) -> Any:
    """A program of the original writes all of its settings, also those that are not set."""
    if isinstance(value, dict):
        inner = {name: without_zeros(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each not in (None, "", 0, "0", "0s", {}, [])}
    return [without_zeros(each) for each in value] if isinstance(value, list) else value


def is_whole(recorded: Object) -> bool:
    """Not so of the Secret with an operating system configuration, which is compared in the seed."""
    return recorded["kind"] != "Secret" or recorded["type"] is not None
