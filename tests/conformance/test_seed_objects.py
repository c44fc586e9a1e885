"""The objects that the gardenlet writes into a seed are those of the original, but for what is listed here.

Both sides are created in a dry run first, unless recorded as they were stored, so that they have the defaults of an
API server.
"""

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial

import pytest
import yaml

from agent.gardenlet.seed.main import ingress
from components import (
    cluster_identity,
    dashboards,
    gardenlet_autoscaling,
    ingress_gateway,
    istio,
    istiod,
    kube_state_metrics,
    namespaces,
    plutono,
    prometheus,
    resource_manager,
    seed_registry,
    system,
    vpn_authorization_server,
)
from components.gateways import Gateway
from components.seed_component import SeedComponent, SeedInputs
from config.gardenlet.schema import GardenletConfiguration, Images
from config.resource_manager import decode
from conformance.seed_objects import (
    Name,
    Stored,
    by_name,
    differences,
    found_differences,
    normal,
    recorded_managed_resources,
    recorded_objects,
    stored_by,
    unhashed,
    valid,
)
from devcluster.cluster import Cluster
from gardener.api.kinds import POD_MONITORS, SCRAPE_CONFIGS, SERVICE_MONITORS
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.plan import data_of
from kit.shoot_inputs import NamedSecrets
from kube.objects import Object
from kube.paths import at
from localprocesses.pki import Authority

GATEWAY = Gateway(namespace="istio-ingress", service=ingress_gateway.NAME, labels=istio.GATEWAY)
ZONES = ("0",)
BUNDLE = Authority.create("ca-seed").bundle.decode()
IMAGES = Images(
    istio_proxy="gcr.io/istio-release/proxyv2:1.21.5-distroless",
    istio_discovery="gcr.io/istio-release/pilot:1.21.5-distroless",
    etcd_druid="europe-docker.pkg.dev/gardener-project/releases/gardener/etcd-druid:v0.22.7",
    kube_state_metrics="registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.13.0",
    ingress_default_backend="europe-docker.pkg.dev/gardener-project/releases/gardener/ingress-default-backend:0.19.0",
    nginx_ingress_controller="registry.k8s.io/ingress-nginx/controller-chroot:v1.11.2",
    plutono="europe-docker.pkg.dev/gardener-project/releases/3rd/credativ/plutono:v7.5.33",
    dashboard_refresher="quay.io/kiwigrid/k8s-sidecar:1.27.6",
    prometheus="quay.io/prometheus/prometheus:v2.54.1",
    prometheus_operator="quay.io/prometheus-operator/prometheus-operator:v0.76.2",
    config_reloader="quay.io/prometheus-operator/prometheus-config-reloader:v0.76.2",
    vpa_admission_controller="registry.k8s.io/autoscaling/vpa-admission-controller:1.2.1",
    vpa_recommender=(
        "europe-docker.pkg.dev/gardener-project/releases/gardener/autoscaler/vertical-pod-autoscaler/"
        "vpa-recommender:1.2.1"
    ),
    vpa_updater="registry.k8s.io/autoscaling/vpa-updater:1.2.1",
    vpn_authorization_server="europe-docker.pkg.dev/gardener-project/releases/gardener/ext-authz-server:0.10.0",
)
SEED: Object = {
    "spec": {"ingress": {"domain": "ingress.local.seed.example.com"}, "dns": {"provider": {"type": "local"}}}
}

_NAME = resource_manager.NAME
_CONFIG = Name("ConfigMap", f"{_NAME}-<hash>")
_CHECKSUM = "a digest of the pod template, which is computed in another way"
_IMAGE = "the image is this project's"
_MADE = "the API server sets it when the Namespace is made; only labels and annotations of it are written"
_EMPTY = "empty there"
_PROTECTED = "the original has no reference there, so its garbage collector may remove the ConfigMap of a running pod"
_REVISION = "the controller of Deployments sets it"
_YAML = "the same in another notation"
_VOLUME = "called as the ConfigMap without its hash"
_VERSION = "the image states which version it is"
_SCRAPED, _FROM_WORLD = (
    f"metadata/annotations/networking.resources.gardener.cloud/{name}"
    for name in ("from-all-seed-scrape-targets-allowed-ports", "from-world-to-ports")
)
_MEMORY = "what a process of this project uses"
_OF_SERVERS = {
    "spec/arbitraryFSAccessThroughSMs": _EMPTY,
    "spec/rules": _EMPTY,
    "spec/storage/volumeClaimTemplate/status": _EMPTY,
    "spec/tsdb": _EMPTY,
}

ONLY_METADATA = ("PodMonitor", "PrometheusRule", "ScrapeConfig", "ServiceMonitor")
"""Kinds of which no more is recorded: what is in their `spec` is of this project."""

DIFFERENCES: Mapping[Name, Mapping[str, str]] = {
    Name("Namespace", "garden"): {"metadata/labels/kubernetes.io/metadata.name": _MADE, "spec": _MADE},
    Name("Namespace", "istio-ingress"): {"metadata/labels/kubernetes.io/metadata.name": _MADE, "spec": _MADE},
    Name("Namespace", "istio-system"): {"metadata/labels/kubernetes.io/metadata.name": _MADE, "spec": _MADE},
    Name("DNSRecord", "seed-ingress"): {
        "metadata/annotations/gardener.cloud/timestamp": "set with what is requested from the extension",
        "metadata/finalizers": "the extension's",
    },
    Name("Namespace", "kube-system"): {"metadata/labels/kubernetes.io/metadata.name": _MADE, "spec": _MADE},
    _CONFIG: {"data/config.yaml": "what has its default is left out: both are the same configuration, see below"},
    Name("Deployment", _NAME): {
        "metadata/annotations/deployment.kubernetes.io/revision": _REVISION,
        "spec/template/metadata/labels/checksum/pod-template": _CHECKSUM,
        "spec/template/spec/containers/0/image": _IMAGE,
        "spec/template/spec/containers/0/resources/requests/memory": _MEMORY,
        "spec/template/spec/topologySpreadConstraints/0/labelSelector/matchLabels/checksum/pod-template": _CHECKSUM,
    },
    Name("ConfigMap", "custom-resource-state-config-<hash>"): {
        "data/custom-resource-state.yaml": "only the first lines are recorded; the metrics are those of the arguments"
    },
    Name("Deployment", kube_state_metrics.NAME): {
        "metadata/annotations": _PROTECTED,
        "spec/template/metadata/annotations": _PROTECTED,
        "spec/template/spec/containers/0/volumeMounts/0/name": _VOLUME,
        "spec/template/spec/volumes/0/name": _VOLUME,
    },
    Name("ConfigMap", "istio"): {"data/mesh": _YAML},
    Name("Service", istiod.NAME): {_SCRAPED: _YAML, _FROM_WORLD: _YAML},
    Name("Deployment", ingress_gateway.NAME): {
        "metadata/labels/app.kubernetes.io/version": _VERSION,
        "spec/template/metadata/annotations/proxy.istio.io/config": _YAML,
    },
    Name("HorizontalPodAutoscaler", ingress_gateway.NAME): {"metadata/labels/app.kubernetes.io/version": _VERSION},
    Name("RoleBinding", f"{ingress_gateway.NAME}-sds"): {"subjects/0/namespace": "the namespace of the binding"},
    Name("Service", ingress_gateway.NAME): {
        "metadata/labels/app.kubernetes.io/version": _VERSION,
        _SCRAPED: _YAML,
        _FROM_WORLD: _YAML,
    },
    Name("ServiceAccount", f"{ingress_gateway.NAME}-service-account"): {
        "metadata/labels/app.kubernetes.io/version": _VERSION
    },
    Name("ConfigMap", "plutono-dashboard-providers-<hash>"): {"data/default.yaml": _YAML},
    Name("ConfigMap", "plutono-dashboards"): {
        f"data/{file}": "dashboards of this project"
        for file in (*dashboards.files(), *recorded_objects()[Name("ConfigMap", "plutono-dashboards")]["data"])
    },
    Name("ConfigMap", "plutono-datasources-<hash>"): {"data/datasources.yaml": _YAML},
    Name("Secret", "plutono-config-<hash>"): {"data/plutono.ini": "the password is another one"},
    Name("Deployment", plutono.NAME): {"spec/template/spec/volumes/5": "nothing uses that volume"},
    **{Name("Prometheus", server): _OF_SERVERS for server in prometheus.SERVERS},
    Name("Secret", "prometheus-cache-additional-scrape-configs"): {
        "data/prometheus.yaml": "the same targets and series by other rules, see below"
    },
    Name("MutatingWebhookConfiguration", "zzz-vpa-webhook-config-source"): {
        "metadata/annotations/gardener.cloud/description": "the same in other words"
    },
    Name("Deployment", vpn_authorization_server.NAME): {
        "metadata/annotations": _REVISION,
        "spec/template/spec/topologySpreadConstraints": "the webhook of the resource manager adds them",
    },
    Name("VerticalPodAutoscaler", "gardenlet-vpa"): {
        "spec/resourcePolicy/containerPolicies/0/minAllowed/memory": _MEMORY
    },
}
"""Object -> path -> reason."""

NOT_WRITTEN: Mapping[Name, str] = {
    Name("Namespace", "extension-provider-local-qvf5f"): "the controller of ControllerInstallations makes it",
    Name("ConfigMap", "kube-root-ca.crt"): "a controller of Kubernetes makes it",
    Name("ServiceAccount", "default"): "a controller of Kubernetes makes it",
}
"""Of what the original writes itself."""

NOT_BUILT: Mapping[str, str] = {
    "provider-local-qvf5f": "the controller of ControllerInstallations makes it",
}
"""ManagedResources."""


CONTENTS = {"ca-seed-bundle": {"bundle.crt": BUNDLE.encode()}, "plutono-admin": {"password": b"secret"}}
INPUTS = SeedInputs(
    config=GardenletConfiguration(images=IMAGES),
    seed={
        "metadata": {"name": "local"},
        "spec": {"ingress": {"domain": "ingress.local.seed.example.com"}, "networks": {"nodes": "10.221.0.0/16"}},
    },
    secrets=NamedSecrets(CONTENTS),
    identity="uid",
    served=(POD_MONITORS, SCRAPE_CONFIGS, SERVICE_MONITORS),
    login_secret="seed-observability-ingress-12345678",
)
WITHOUT_MANAGED_RESOURCE = (vpn_authorization_server.COMPONENT, gardenlet_autoscaling.COMPONENT)


def made(component: SeedComponent) -> list[Object]:
    """A Secret, a ManagedResource, and what the gardenlet writes itself."""
    return [*component.objects(INPUTS)]


COMPONENTS: Mapping[str, Callable[[], list[Object]]] = {
    **{
        each.name: partial(made, each)
        for each in (cluster_identity.COMPONENT, system.COMPONENT, *seed_registry.COMPONENTS)
        if each not in WITHOUT_MANAGED_RESOURCE
    },
    ingress_gateway.MANAGED_RESOURCE: lambda: ingress_gateway.objects(ingress_gateway.Values(image=IMAGES.istio_proxy)),
    istiod.MANAGED_RESOURCE: lambda: istiod.objects(istiod.Values(image=IMAGES.istio_discovery)),
}
"""Those that are ManagedResources."""


def written() -> Iterator[Object]:
    """What the gardenlet writes itself."""
    yield from namespaces.objects(zones=ZONES)
    yield from namespaces.of_istio(system="istio-system", gateways=[GATEWAY], zones=ZONES)
    if record := ingress.record(SEED, address="192.0.2.1"):
        yield record
    values = resource_manager.Values(
        image="resource-manager", server_secret=f"{_NAME}-server-12345678", ca_bundle=BUNDLE, zones=ZONES
    )
    yield from resource_manager.objects(values)
    yield from made(plutono.COMPONENT)[2:]
    for each in WITHOUT_MANAGED_RESOURCE:
        yield from made(each)


@pytest.fixture
def stored(cluster: Cluster, namespace: str) -> Stored:
    return stored_by(cluster, namespace, as_they_are={"Ingress", "Namespace"})


def expected(names: Iterable[Name]) -> dict[Name, set[str]]:
    specs = {name: {"spec"} for name in names if name.kind in ONLY_METADATA}
    return {name: set(DIFFERENCES[name]) for name in names if name in DIFFERENCES} | specs


def test_what_the_gardenlet_writes_itself(stored: Stored) -> None:
    ours = by_name(stored(obj) for obj in written())
    recorded = recorded_objects()
    assert found_differences(ours, recorded) == expected(ours)
    assert recorded.keys() - ours.keys() == NOT_WRITTEN.keys()


def test_all_managed_resources_are_there_but_those_that_are_not_built() -> None:
    assert recorded_managed_resources().keys() == COMPONENTS.keys() | NOT_BUILT.keys()


def test_the_resource_manager_is_configured_alike() -> None:
    """Save for the namespace of machines, which nothing reads while the approver is off."""
    ours, recorded = (
        asdict(decode(objects[_CONFIG]["data"]["config.yaml"]).config)
        for objects in (by_name(written()), recorded_objects())
    )
    paths = [path for path, *_ in differences(ours, recorded)]
    assert paths == ["controllers/csr_approver/machine_namespace"]


@pytest.mark.parametrize(
    ("component", "name", "path"),
    [
        (plutono.NAME, Name("ConfigMap", "plutono-dashboard-providers-<hash>"), ("data", "default.yaml")),
        (plutono.NAME, Name("ConfigMap", "plutono-datasources-<hash>"), ("data", "datasources.yaml")),
        (istiod.MANAGED_RESOURCE, Name("ConfigMap", "istio"), ("data", "mesh")),
        (istiod.MANAGED_RESOURCE, Name("Service", istiod.NAME), _SCRAPED.split("/", 2)),
        (istiod.MANAGED_RESOURCE, Name("Service", istiod.NAME), _FROM_WORLD.split("/", 2)),
        (ingress_gateway.MANAGED_RESOURCE, Name("Service", ingress_gateway.NAME), _SCRAPED.split("/", 2)),
        (ingress_gateway.MANAGED_RESOURCE, Name("Service", ingress_gateway.NAME), _FROM_WORLD.split("/", 2)),
        (
            ingress_gateway.MANAGED_RESOURCE,
            Name("Deployment", ingress_gateway.NAME),
            ("spec", "template", "metadata", "annotations", "proxy.istio.io/config"),
        ),
    ],
)
def test_texts_in_another_notation_mean_the_same(component: str, name: Name, path: Sequence[str]) -> None:
    ours, recorded = (
        yaml.safe_load(at(by_name(objects)[name], *path))
        for objects in (_contents(COMPONENTS[component]()), recorded_managed_resources()[component]["objects"])
    )
    assert ours == recorded


def test_nodes_are_scraped_as_the_original_does() -> None:
    """The same jobs with the same series, but for its special cases of nodes that are containers themselves."""
    secret = Name("Secret", "prometheus-cache-additional-scrape-configs")
    ours, recorded = (
        by_name(objects)[secret]["data"]["prometheus.yaml"]
        for objects in (
            _contents(COMPONENTS[prometheus.name_of(prometheus.CACHE)]()),
            recorded_managed_resources()[prometheus.name_of(prometheus.CACHE)]["objects"],
        )
    )
    for job, theirs in zip(yaml.safe_load(base64.b64decode(ours)), yaml.safe_load(recorded), strict=True):
        assert _series(job.pop("metric_relabel_configs")) == _series(theirs.pop("metric_relabel_configs"))
        assert job == theirs


def _series(relabelings: Sequence[Object]) -> set[str]:
    """The names of series that the first rule on names lets pass."""
    (kept, *_) = (
        each for each in relabelings if each.get("action") == "keep" and each["source_labels"] == ["__name__"]
    )
    prefix, names, _ = re.split(r"[()]", kept["regex"].strip("^$"))
    return {prefix + name for name in names.split("|")}


def _contents(component: Sequence[Object]) -> list[Object]:
    secret, *_ = component
    return [item.object for item in decode_secrets([data_of(secret)]).objects]


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_managed_resource_and_what_it_has(name: str, stored: Stored) -> None:
    secret, managed, *_ = COMPONENTS[name]()
    recorded = recorded_managed_resources()[name]
    (its_secret,) = recorded["secret"]
    assert unhashed(secret["metadata"]["name"]) == unhashed(its_secret["metadata"]["name"])
    assert (secret["type"], secret["immutable"], [*secret["data"]]) == (
        its_secret["type"],
        its_secret["immutable"],
        its_secret["keys"],
    )
    assert secret["metadata"]["labels"] == its_secret["metadata"]["labels"]

    meta = {**recorded["metadata"], "name": name, "namespace": recorded["namespace"]}
    del meta["finalizers"]  # the resource manager's
    theirs = normal({**managed, "metadata": meta, "spec": recorded["spec"]})
    assert not [*differences(normal(managed), theirs)]

    ours = by_name(stored(obj) for obj in _contents([secret, managed]))
    assert found_differences(
        ours, by_name(stored(valid(obj, ca_bundle=BUNDLE)) for obj in recorded["objects"])
    ) == expected(ours)
    assert by_name(recorded["objects"]).keys() == ours.keys()
