"""The objects that the gardenlet writes for a Shoot with workers are those of the original, but for what is listed.

As `test_shoot_objects`, of what only such a Shoot has.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from agent.gardenlet.components import (
    apiserver_proxy,
    coredns,
    kube_apiserver,
    kube_controller_manager,
    kube_proxy,
    kube_scheduler,
    machine_controllers,
    metrics_server,
    node_problem_detector,
    shoot_infrastructure,
    shoot_pods,
    shoot_system,
)
from agent.gardenlet.components.resource_manager import shoot as resource_manager
from agent.gardenlet.components.resource_manager.configuration import Pods
from agent.gardenlet.components.vpn import client as vpn_client
from agent.gardenlet.components.vpn import server as vpn_server
from agent.gardenlet.components.worker_pools import node_agent, operating_system, worker
from agent.gardenlet.components.worker_pools.pools import HASHES, hashes, pools_of
from conformance.seed_objects import (
    Name,
    Stored,
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
from kube.objects import Object, metadata
from localprocesses.pki import Authority

BUNDLE = Authority.create("ca").bundle.decode()
HOST = "api.w.local.internal.example.com"
ADDRESS, POD_NETWORK, SERVICE_NETWORK, NODE_NETWORK = "10.5.0.1", "10.3.0.0/16", "10.4.0.0/16", "10.250.0.0/16"
NETWORKS = shoot_pods.Networks(pods=POD_NETWORK, services=SERVICE_NETWORK, nodes=NODE_NETWORK)
STATUS = {"apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1", "kind": "InfrastructureStatus"}
RELEASES = "europe-docker.pkg.dev/gardener-project/releases"
ENVOY = f"{RELEASES}/3rd/envoyproxy/envoy-distroless:v1.31.1"
PROFILE: Object = {
    "metadata": {"name": "local"},
    "spec": {"machineTypes": [{"name": "local", "cpu": "1", "gpu": "0", "memory": "8Gi"}]},
}
Differences = Mapping[str, str]
ZONES = keys.HIGH_AVAILABILITY_ZONES
TOLERANCE = keys.HIGH_AVAILABILITY_FAILURE_TOLERANCE

# --- what is listed

_REVISION = "the controller of Deployments sets it"
_ASKED = "whoever asks the extension for something notes when"
_EXTENSION = "the extension's"
_REQUESTOR = "the requestor of tokens puts it in"
_EMPTY = "empty; the same if it is missing"
_IMAGE, _MEMORY = "the image is this project's", "what a process of this project uses"
_KEYS = "another key"
_WORDS = "said in other words"
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


def secret_name(config: str) -> str:
    return f"{config}-12345678"


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


def api_server() -> kube_apiserver.Values:
    spec = shoot()["spec"]
    return kube_apiserver.Values(
        namespace=NAMESPACE,
        image="registry.k8s.io/kube-apiserver:v1.30.14",
        version=spec["kubernetes"]["version"],
        secrets=kube_apiserver.Secrets(
            ca_bundle=secret_name("ca-bundle"),
            ca_client_bundle=secret_name("ca-client-bundle"),
            ca_front_proxy_bundle=secret_name("ca-front-proxy-bundle"),
            ca_etcd_bundle=secret_name("ca-etcd-bundle"),
            etcd_client=secret_name("etcd-client"),
            server=secret_name("kube-apiserver"),
            aggregator=secret_name("kube-aggregator"),
            service_account_key=secret_name("service-account-key"),
            service_account_key_bundle=secret_name("service-account-key-bundle"),
            static_token=secret_name("kube-apiserver-static-token"),
            ca_kubelet_bundle=secret_name("ca-kubelet-bundle"),
            kubelet=secret_name("kube-apiserver-kubelet"),
            ca_vpn_bundle=secret_name("ca-vpn-bundle"),
            http_proxy=secret_name("kube-apiserver-http-proxy"),
        ),
        encryption=kube_apiserver.Encryption(keys=[kube_apiserver.Key("key", "<key>")]),
        health_token="token",
        host=HOST,
        service_network=SERVICE_NETWORK,
        advertised=ADDRESS,
        settings=spec["kubernetes"]["kubeAPIServer"],
        has_workers=True,
    )


def controller_manager() -> kube_controller_manager.Values:
    return kube_controller_manager.Values(
        namespace=NAMESPACE,
        image="registry.k8s.io/kube-controller-manager:v1.30.14",
        version="1.30.14",
        secrets=kube_controller_manager.Secrets(
            ca_bundle=secret_name("ca-bundle"),
            ca_client=secret_name("ca-client"),
            ca_kubelet="ca-kubelet",
            server=secret_name("kube-controller-manager-server"),
            service_account_key=secret_name("service-account-key"),
            generic_token_kubeconfig=secret_name("generic-token-kubeconfig"),
        ),
        service_network=SERVICE_NETWORK,
        pod_network=POD_NETWORK,
        settings=shoot()["spec"]["kubernetes"]["kubeControllerManager"],
        apis=kube_apiserver.runtime_config(api_server()),
    )


def scheduler() -> kube_scheduler.Values:
    return kube_scheduler.Values(
        namespace=NAMESPACE,
        image="registry.k8s.io/kube-scheduler:v1.30.14",
        version="1.30.14",
        secrets=kube_scheduler.Secrets(
            ca_client_bundle=secret_name("ca-client-bundle"),
            server=secret_name("kube-scheduler-server"),
            generic_token_kubeconfig=secret_name("generic-token-kubeconfig"),
        ),
    )


def its_resource_manager() -> resource_manager.Values:
    return resource_manager.Values(
        namespace=NAMESPACE,
        image="resource-manager",
        seed_identity="<uid>",
        server_secret=secret_name("gardener-resource-manager-server"),
        ca_secret=secret_name("ca-bundle"),
        ca_bundle=BUNDLE,
        generic_token_kubeconfig=secret_name("generic-token-kubeconfig"),
        pods=Pods(host=HOST),
    )


def machines() -> Iterator[Object]:
    common: dict[str, Any] = {
        "namespace": NAMESPACE,
        "namespace_uid": "uid",
        "token_kubeconfig": secret_name("generic-token-kubeconfig"),
    }
    image = f"{RELEASES}/gardener/machine-controller-manager:v0.54.0"
    yield from machine_controllers.manager(machine_controllers.Values(**common, image=image))
    groups = [machine_controllers.Group(f"{NAMESPACE}-pool-z1", 1, 2)]
    yield from machine_controllers.cluster_autoscaler(
        machine_controllers.AutoscalerValues(
            **common, image=f"{RELEASES}/gardener/autoscaler/cluster-autoscaler:v1.30.0", groups=groups
        )
    )


def extensions() -> Iterator[Object]:
    values = shoot_infrastructure.Values(namespace=NAMESPACE, shoot=shoot())
    yield shoot_infrastructure.credentials(NAMESPACE, {"key": base64.b64encode(b"b").decode()})
    yield shoot_infrastructure.infrastructure(values, ssh_key="a")
    yield shoot_infrastructure.control_plane(values, status=STATUS)
    yield shoot_infrastructure.network(values, pods=POD_NETWORK, services=SERVICE_NETWORK)
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


def on_nodes() -> Iterator[Object]:
    host = f"{HOST}."
    yield from coredns.objects(
        coredns.Values(
            namespace=NAMESPACE,
            image="registry.k8s.io/coredns/coredns:v1.11.3",
            address="10.4.0.10",
            host=host,
            networks=[NODE_NETWORK, POD_NETWORK],
        )
    )
    yield from kube_proxy.objects(
        kube_proxy.Values(
            namespace=NAMESPACE,
            images={"1.30.14": "registry.k8s.io/kube-proxy:v1.30.14"},
            server=f"https://{HOST}",
            ca_bundle=BUNDLE.encode(),
            pod_network=POD_NETWORK,
            nodes=[kube_proxy.Nodes("pool", "1.30.14")],
            settings=shoot()["spec"]["kubernetes"]["kubeProxy"],
        )
    )
    data = {"tls.crt": b"a", "tls.key": b"b"}
    yield from metrics_server.objects(
        metrics_server.Values(
            namespace=NAMESPACE,
            image="registry.k8s.io/metrics-server/metrics-server:v0.7.2",
            host=host,
            server=data,
            ca_bundle=BUNDLE.encode(),
        )
    )
    yield from node_problem_detector.objects(
        node_problem_detector.Values(
            namespace=NAMESPACE,
            image="registry.k8s.io/node-problem-detector/node-problem-detector:v0.8.19",
            host=host,
        )
    )
    yield from apiserver_proxy.objects(
        apiserver_proxy.Values(
            namespace=NAMESPACE,
            image=ENVOY,
            sidecar_image=f"{RELEASES}/gardener/apiserver-proxy:v0.17.0",
            address=ADDRESS,
            host=host,
        )
    )
    yield from vpn_client.objects(
        vpn_client.Values(
            namespace=NAMESPACE,
            image=f"{RELEASES}/gardener/vpn-shoot-client:0.26.0",
            host=host,
            seed_pods="10.223.0.0/16",
            ca_bundle={"bundle.crt": b"a"},
            certificate=data,
            key={"vpn.tlsauth": b"a"},
        )
    )


def tunnel_server() -> list[Object]:
    return vpn_server.objects(
        vpn_server.Values(
            namespace=NAMESPACE,
            image=f"{RELEASES}/gardener/vpn-seed-server:0.26.0",
            proxy_image=ENVOY,
            networks=NETWORKS,
            ca_bundle=secret_name("ca-vpn-bundle"),
            certificate=secret_name("vpn-seed-server"),
            key=secret_name("vpn-seed-server-tlsauth"),
        )
    )


def written() -> Iterator[Object]:
    yield from extensions()
    yield from kube_apiserver.objects(api_server())
    yield from kube_controller_manager.objects(controller_manager())
    yield from kube_scheduler.objects(scheduler())
    yield from resource_manager.objects(its_resource_manager())
    yield from machines()
    yield from tunnel_server()
    yield from on_nodes()
    yield from shoot_system.namespaces(NAMESPACE, zones="0")
    yield from shoot_system.system(NAMESPACE, of_pods=shoot_pods.objects(shoot(), project="local", networks=NETWORKS))
    yield from node_agent.objects(NAMESPACE, [(pool_config().pool, operating_system.objects(pool_config())[1])])


@pytest.fixture
def stored(cluster: Cluster, namespace: str) -> Stored:
    return stored_by(cluster, namespace, as_they_are={"Namespace", "Secret"})


@pytest.fixture
def stored_in_shoot(cluster: Cluster, namespace: str) -> Stored:
    """Services as they are: their addresses are of another network."""
    as_they_are = {"APIService", "Namespace", "Secret", "Service", "ServiceAccount"}
    return stored_by(cluster, namespace, as_they_are=as_they_are)


# --- comparisons


def test_what_the_gardenlet_writes_into_the_seed(stored: Stored) -> None:
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


def test_managed_resources_and_what_they_have(stored_in_shoot: Stored) -> None:
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
    """Without what is recorded as its size, and with files as what they say."""
    if obj["kind"] == "OperatingSystemConfig":
        spec = obj["spec"]
        units = [
            {**each, **({"content": settings(each["content"])} if "content" in each else {})} for each in spec["units"]
        ]
        return {**obj, "spec": {**spec, "units": units, "files": [without_content(each) for each in spec["files"]]}}
    if obj["kind"] == "ConfigMap" or obj["metadata"]["name"] == HASHES:
        return {**obj, "data": {name: said(name, content) for name, content in obj["data"].items()}}
    return obj


def settings(unit: str) -> list[str]:
    """What is said for people differs."""
    lines = [line.strip() for line in unit.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "Description=", "Documentation="))]


def without_content(file: Object) -> Object:
    inline = file["content"].get("inline")
    return {**file, "content": {"inline": inline if inline["encoding"] == "" else "b64"}} if inline else file


def said(name: str, content: str) -> Any:
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
