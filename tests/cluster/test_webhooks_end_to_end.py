"""Every webhook at work: the server, certificates and configurations by the commands, and objects in a real cluster.

The cluster is one of this file's own, since webhooks are asked about everything in a cluster. All tests use one server.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from devcluster.cluster import Cluster
from devcluster.pytest_plugin import RunClusters
from kit.eventually import eventually
from kit.kinds import custom_resource, definition_path, serve
from kit.objects import decoded, deployment, obj, pod, secret, service
from kit.processes.webhooks import WebhookProcess
from kit.webhook_installation import (
    CRDS,
    DRY_RUN,
    NAMESPACE,
    OURS,
    ROLE,
    create_namespace,
    dry_run,
    has_seccomp_profile,
    install,
    install_and_wait,
    make_certificates,
    mount_certificate,
    replica,
)
from kit.world import Place, find_at
from kube.errors import ApiError, Forbidden, Invalid, NotFound
from kube.objects import Object
from kube.resources import CONFIG_MAPS, NODES

pytestmark = pytest.mark.timeout(600)

HIGH_AVAILABILITY = "high-availability-config.resources.gardener.cloud"
INFRASTRUCTURES = custom_resource("extensions.gardener.cloud", "Infrastructure", version="v1alpha1")
CONFIRMED: Object = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
EXTENSIONS = "/apis/extensions.gardener.cloud/v1alpha1"

WEBHOOKS: Object = {
    "crdDeletionProtection": {"enabled": True},
    "endpointSliceHints": {"enabled": True},
    "extensionValidation": {"enabled": True},
    "highAvailabilityConfig": {"enabled": True, "defaultNotReadyTolerationSeconds": 60},
    "kubernetesServiceHost": {"enabled": True, "host": "api.example.com"},
    "podKubeAPIServerLoadBalancing": {"enabled": True},
    "podSchedulerName": {"enabled": True, "schedulerName": "bin-packing-scheduler"},
    "podTopologySpreadConstraints": {"enabled": True},
    "projectedTokenMount": {"enabled": True},
    "seccompProfile": {"enabled": True},
    "systemComponentsConfig": {
        "enabled": True,
        "nodeSelector": {"for": "system"},
        "podNodeSelector": {"for": "system"},
        "podTolerations": [{"key": "configured", "operator": "Exists"}],
    },
    "tokenInvalidator": {"enabled": True},
    "vpaInPlaceUpdates": {"enabled": True},
}

NewNamespace = Callable[..., str]


# --- a cluster with webhooks


@pytest.fixture(scope="module")
def cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as own:
        yield own


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[WebhookProcess]:
    create_namespace(cluster, NAMESPACE, labels=ROLE)
    taint = {"key": "dedicated", "value": "system", "effect": "NoSchedule"}
    Place(cluster, "").create(obj(NODES, "n", labels={"for": "system"}, spec={"taints": [taint]}))
    serve(cluster, custom_resource("autoscaling.k8s.io", "VerticalPodAutoscaler"))
    serve(cluster, INFRASTRUCTURES)
    process = replica(WEBHOOKS, cluster)
    make_certificates(process, cluster)
    mount_certificate(process, cluster)
    with process:
        process.wait_until_ready(seconds=60)
        install_and_wait(process, cluster, asked="seccomp-profile")
        yield process


@pytest.fixture(autouse=True)
def _installed(server: WebhookProcess) -> None:
    """All tests are about what the server is asked."""


@pytest.fixture
def new_namespace(cluster: Cluster) -> NewNamespace:
    def make(*, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> str:
        name = f"test-{uuid.uuid4().hex[:12]}"
        create_namespace(cluster, name, labels=ROLE if labels is None else labels, annotations=annotations)
        eventually(lambda: is_known(cluster, name))
        return name

    return make


def is_known(cluster: Cluster, namespace: str) -> bool:
    """Whether the server has heard of the namespace; it refuses what comes to it more than two seconds before."""
    with contextlib.suppress(ApiError):
        dry_run(cluster, of_apps(namespace, "deployments"), workload("w"))
        dry_run(cluster, f"/api/v1/namespaces/{namespace}/pods", pod("p"))
        return True
    return False


# --- workloads


def workload(name: str, labels: Mapping[str, str] | None = None) -> Object:
    marks = {f"{HIGH_AVAILABILITY}/type": "server", **(labels or {})}
    return {field: value for field, value in deployment(name, replicas=1, labels=marks).items() if field != "kind"}


def of_apps(namespace: str, plural: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/{plural}"


CONSIDERED: dict[str, Any] = {
    "labels": {**ROLE, f"{HIGH_AVAILABILITY}/consider": "true"},
    "annotations": {f"{HIGH_AVAILABILITY}/failure-tolerance-type": "zone", f"{HIGH_AVAILABILITY}/zones": "a,b"},
}


@pytest.mark.parametrize("plural", ["deployments", "statefulsets"])
def test_workloads_get_replicas_and_are_spread(cluster: Cluster, new_namespace: NewNamespace, plural: str) -> None:
    collection = of_apps(new_namespace(**CONSIDERED), plural)
    one = f"{collection}/w"
    obj = workload("w")

    would_be = dry_run(cluster, collection, obj)
    assert find_at(cluster, one) is None
    created = cluster.api.create(collection, obj)
    for each in (would_be, created):
        spec = each["spec"]["template"]["spec"]
        assert each["spec"]["replicas"] == 2
        assert [(c["topologyKey"], c["whenUnsatisfiable"]) for c in spec["topologySpreadConstraints"]] == [
            ("kubernetes.io/hostname", "DoNotSchedule"),
            ("topology.kubernetes.io/zone", "DoNotSchedule"),
        ]
        assert {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"} | {
            "tolerationSeconds": 60
        } in spec["tolerations"]

    spec = {**created["spec"], "replicas": 1}
    updated = cluster.api.update(one, {"metadata": obj["metadata"], "spec": spec})
    assert updated["spec"] == created["spec"], "what an update takes away comes back"
    assert cluster.api.patch(one, {"spec": {"replicas": 1}})["spec"]["replicas"] == 2
    assert cluster.api.patch(one, {"spec": {"replicas": 0}})["spec"]["replicas"] == 0, "hibernated"
    cluster.api.delete(one)


def test_an_autoscaler_decides_how_many_replicas_there_are(cluster: Cluster, new_namespace: NewNamespace) -> None:
    namespace = new_namespace(**CONSIDERED)
    deployments = of_apps(namespace, "deployments")
    cluster.api.create(deployments, workload("scaled"))
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"}
    scaler: Object = {
        "metadata": {"name": "scaled", "labels": {f"{HIGH_AVAILABILITY}/type": "server"}},
        "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 5},
    }
    created = cluster.api.create(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers", scaler)
    assert (created["spec"]["minReplicas"], created["spec"]["maxReplicas"]) == (2, 5)
    eventually(lambda: cluster.api.patch(f"{deployments}/scaled", {"spec": {"replicas": 4}})["spec"]["replicas"] == 4)
    # An older version that the rules do not name is converted for the webhook.
    scaler["metadata"]["name"] = "older"
    older = cluster.api.create(f"/apis/autoscaling/v1/namespaces/{namespace}/horizontalpodautoscalers", scaler)
    assert older["spec"]["minReplicas"] == 2


def test_workloads_that_opted_out_and_other_namespaces_are_left_alone(
    cluster: Cluster, new_namespace: NewNamespace
) -> None:
    considered, not_considered = new_namespace(**CONSIDERED), new_namespace()
    skipped = workload("w", {f"{HIGH_AVAILABILITY}/skip": "true"})
    for namespace, untouched in ((considered, skipped), (not_considered, workload("w"))):
        created = cluster.api.create(of_apps(namespace, "deployments"), untouched)
        assert created["spec"]["replicas"] == 1
        assert "topologySpreadConstraints" not in created["spec"]["template"]["spec"]


# --- pods


SYSTEM = {**ROLE, "system-components-config.resources.gardener.cloud/consider": "true"}


def spread_pod(name: str, **labels: str) -> Object:
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    constraint |= {"labelSelector": {"matchLabels": {"app": "a"}}}
    labels = {"app": "a", "pod-template-hash": "h", **labels}
    return pod(name, labels=labels, serviceAccountName="mounts-none", topologySpreadConstraints=[constraint])


def with_account(cluster: Cluster, namespace: str) -> str:
    Place(cluster, namespace).create(obj("ServiceAccount", "mounts-none", automountServiceAccountToken=False))
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture(params=["separate", "combined"], scope="module")
def entries(request: pytest.FixtureRequest, cluster: Cluster, server: WebhookProcess) -> str:
    """Pods come to one webhook after another, or to the one for all."""
    way: str = request.param
    if way == "combined":
        install_and_wait(server, cluster, "--combined", asked="pods")
    else:
        install_and_wait(server, cluster, asked="seccomp-profile")
    return way


@pytest.mark.usefixtures("entries")
def test_a_pod_gets_all_that_is_enabled(cluster: Cluster, new_namespace: NewNamespace) -> None:
    pods = with_account(cluster, new_namespace(labels=SYSTEM))
    would_be = dry_run(cluster, pods, spread_pod("p"))
    assert find_at(cluster, f"{pods}/p") is None
    created = cluster.api.create(pods, spread_pod("p"))
    for each in (would_be, created):
        spec = each["spec"]
        (container,) = spec["containers"]
        assert has_seccomp_profile(each)
        assert spec["schedulerName"] == "bin-packing-scheduler"
        assert [volume["name"] for volume in spec["volumes"]] == ["kube-api-access-gardener"]
        assert [mount["name"] for mount in container["volumeMounts"]] == ["kube-api-access-gardener"]
        assert container["env"] == [{"name": "KUBERNETES_SERVICE_HOST", "value": "api.example.com"}]
        assert spec["nodeSelector"] == {"for": "system"}
        assert {"configured", "dedicated"} <= {toleration["key"] for toleration in spec["tolerations"]}
        (constraint,) = spec["topologySpreadConstraints"]
        assert constraint["labelSelector"]["matchLabels"] == {"app": "a", "pod-template-hash": "h"}

    again = dry_run(
        cluster, pods, {"metadata": {"name": "q", "labels": created["metadata"]["labels"]}, "spec": created["spec"]}
    )
    assert again["spec"] == created["spec"], "once is enough"
    relabelled = cluster.api.patch(f"{pods}/p", {"metadata": {"labels": {"more": "x"}}})
    assert relabelled["spec"] == created["spec"]
    cluster.api.delete(f"{pods}/p?gracePeriodSeconds=0")


@pytest.mark.usefixtures("entries")
def test_pods_that_opted_out_and_other_namespaces_are_left_alone(cluster: Cluster, new_namespace: NewNamespace) -> None:
    opted_out = {
        "apiserver-proxy.networking.gardener.cloud/inject": "disable",
        "projected-token-mount.resources.gardener.cloud/skip": "x",
        "seccompprofile.resources.gardener.cloud/skip": "x",
        "system-components-config.resources.gardener.cloud/skip": "x",
        "topology-spread-constraints.resources.gardener.cloud/skip": "x",
    }
    without_proxy = {"apiserver-proxy.networking.gardener.cloud/inject": "disable"}
    pods = with_account(cluster, new_namespace(labels=SYSTEM))
    elsewhere = with_account(cluster, new_namespace(labels=without_proxy))
    for created in (dry_run(cluster, pods, spread_pod("p", **opted_out)), dry_run(cluster, elsewhere, spread_pod("p"))):
        assert created["spec"]["schedulerName"] == "bin-packing-scheduler", "the one without a way out"
        assert is_untouched(created)


def is_untouched(created: Object) -> bool:
    spec = created["spec"]
    return not (
        has_seccomp_profile(created)
        or "env" in spec["containers"][0]
        or "volumes" in spec
        or "nodeSelector" in spec
        or "pod-template-hash" in spec["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]
    )


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize("labels", [OURS, {"static-pod": "true"}], ids=["ours", "static"])
def test_our_own_pods_and_static_ones_are_never_asked_about(
    cluster: Cluster, new_namespace: NewNamespace, labels: dict[str, str]
) -> None:
    pods = with_account(cluster, new_namespace(labels=SYSTEM))
    created = dry_run(cluster, pods, spread_pod("p", **labels))
    assert created["spec"]["schedulerName"] == "default-scheduler"
    assert is_untouched(created)


def test_a_refusal_names_the_webhook_and_what_to_correct(
    cluster: Cluster, new_namespace: NewNamespace, entries: str
) -> None:
    pods = with_account(cluster, new_namespace())
    obj = spread_pod("p")
    obj["metadata"]["annotations"] = {"projected-token-mount.resources.gardener.cloud/expiration-seconds": "1h"}
    name = "pods" if entries == "combined" else "projected-token-mount"
    with pytest.raises(Forbidden) as refused:
        cluster.api.create(pods, obj)
    assert str(refused.value) == (
        f'admission webhook "{name}.resources.gardener.cloud" denied the request: annotation '
        '"projected-token-mount.resources.gardener.cloud/expiration-seconds": strconv.ParseInt: parsing "1h": invalid syntax'
    )


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize("app", ["a", OURS["app"]])
def test_clients_of_shoots_api_servers_learn_its_address(
    cluster: Cluster, new_namespace: NewNamespace, app: str
) -> None:
    """Those of other instances, which are called as we are, too: they are in shoots' namespaces, and we are not."""
    istio, namespace = new_namespace(labels={}), new_namespace()
    gateway = service("istio-ingressgateway-internal", ports=[{"port": 443}])
    address = Place(cluster, istio).create(gateway)["spec"]["clusterIP"]
    settings = {"hosts": "api.internal,api.external", "istio-namespace": istio}
    Place(cluster, namespace).create(obj(CONFIG_MAPS, "istio-internal-load-balancing", data=settings))

    volume = {"name": "kubeconfig", "secret": {"secretName": "generic-token-kubeconfig-1"}}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    expected = [{"ip": address, "hostnames": ["api.internal", "api.external"]}]

    def aliases(**spec: Any) -> Any:
        try:
            return dry_run(cluster, pods, pod("p", labels={"app": app}, **spec))["spec"].get("hostAliases")
        except NotFound:
            return None  # the watch has not told the Service yet

    eventually(lambda: aliases(volumes=[volume]) == expected)
    assert aliases() is None


# --- other objects


def test_endpoints_are_hinted_to_their_zone(cluster: Cluster, new_namespace: NewNamespace) -> None:
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{new_namespace()}/endpointslices"
    endpoint: Object = {"addresses": ["10.1.2.3"], "zone": "a"}
    obj: Object = {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": [endpoint], "ports": []}
    assert "hints" not in cluster.api.create(slices, obj)["endpoints"][0]
    considered = {"metadata": {"labels": {"endpoint-slice-hints.resources.gardener.cloud/consider": "true"}}}
    updated = cluster.api.patch(f"{slices}/s", considered)
    assert updated["endpoints"][0]["hints"] == {"forZones": [{"name": "a"}]}


def test_tokens_become_useless_and_are_renewed(cluster: Cluster, new_namespace: NewNamespace) -> None:
    place = Place(cluster, new_namespace())
    label = "token-invalidator.resources.gardener.cloud/consider"
    marks = {"resources.gardener.cloud/purpose": "token-invalidator", label: "true"}
    of_account = {"kubernetes.io/service-account.name": "default"}
    place.create(secret("t", labels=marks, annotations=of_account, type="kubernetes.io/service-account-token"))
    eventually(lambda: place.get("Secret", "t").get("data", {}).get("token") == "AAAA")
    place.patch("Secret", "t", {"metadata": {"labels": {label: None}}})
    eventually(lambda: len(place.get("Secret", "t")["data"].get("token", "")) > 100)
    without = place.create(secret("other", {"token": "foo"}, labels={label: "true"}))
    assert decoded(without) == {"token": "foo"}, "without the purpose nobody is asked"


@pytest.mark.parametrize(
    ("given", "expected"), [("Auto", "InPlaceOrRecreate"), (None, "InPlaceOrRecreate"), ("Initial", "Initial")]
)
def test_autoscalers_update_in_place(
    cluster: Cluster, new_namespace: NewNamespace, given: str | None, expected: str
) -> None:
    autoscalers = f"/apis/autoscaling.k8s.io/v1/namespaces/{new_namespace()}/verticalpodautoscalers"
    obj: Object = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "v"}}
    obj["spec"] = {"updatePolicy": {"updateMode": given}} if given else {}
    assert cluster.api.create(autoscalers, obj)["spec"]["updatePolicy"]["updateMode"] == expected
    updated = cluster.api.patch(f"{autoscalers}/v", {"spec": {"updatePolicy": {"updateMode": "Recreate"}}})
    assert updated["spec"]["updatePolicy"]["updateMode"] == "InPlaceOrRecreate"


# --- what is refused


def infrastructure(name: str, *, region: str | None = "r", confirmed: bool = False) -> Object:
    spec = {"type": "t", "secretRef": {"name": "s", "namespace": "n"}, **({"region": region} if region else {})}
    return obj(INFRASTRUCTURES, name, spec=spec, **(CONFIRMED["metadata"] if confirmed else {}))


def refusal(error: ApiError) -> str:
    return str(error).partition("denied the request: ")[2]


def test_protected_definitions_are_deleted_only_after_somebody_confirmed_it(cluster: Cluster) -> None:
    treasures, trinkets = (custom_resource("example.com", kind) for kind in ("Treasure", "Trinket"))
    serve(cluster, treasures, labels={"gardener.cloud/deletion-protected": "true"})
    path = definition_path(treasures)
    expected = 'must have a "confirmation.gardener.cloud/deletion" annotation to delete: CustomResourceDefinition '
    for request in (path, path + DRY_RUN, f"{CRDS}?labelSelector=gardener.cloud/deletion-protected"):
        with pytest.raises(Forbidden) as refused:
            cluster.api.delete(request)
        assert refusal(refused.value) == f"{expected}treasures.example.com"
    cluster.api.patch(path, CONFIRMED)
    cluster.api.delete(path)
    eventually(lambda: find_at(cluster, path) is None)
    serve(cluster, trinkets)
    cluster.api.delete(definition_path(trinkets))


def test_extension_resources_are_deleted_only_after_somebody_confirmed_it(
    cluster: Cluster, new_namespace: NewNamespace
) -> None:
    namespace = new_namespace(labels={})
    collection = f"{EXTENSIONS}/namespaces/{namespace}/infrastructures"
    cluster.api.create(collection, infrastructure("a", confirmed=True))
    cluster.api.create(collection, infrastructure("b"))
    message = 'must have a "confirmation.gardener.cloud/deletion" annotation to delete: Infrastructure '
    for request in (f"{collection}/b", f"{collection}/b{DRY_RUN}", collection):
        with pytest.raises(Forbidden) as refused:
            cluster.api.delete(request)
        assert refusal(refused.value) == f"{message}{namespace}/b"
    assert len(cluster.api.get(collection)["items"]) == 2, "none of a collection goes before all are confirmed"
    cluster.api.delete(f"{collection}/a{DRY_RUN}")
    cluster.api.patch(f"{collection}/b", CONFIRMED)
    cluster.api.delete(collection)
    assert cluster.api.get(collection)["items"] == []


def test_extension_resources_with_mistakes_are_refused(cluster: Cluster, new_namespace: NewNamespace) -> None:
    collection = f"{EXTENSIONS}/namespaces/{new_namespace(labels={})}/infrastructures"
    for request in (collection, collection + DRY_RUN):
        with pytest.raises(Invalid) as refused:
            cluster.api.create(request, infrastructure("i", region=None))
        assert refusal(refused.value) == (
            'Infrastructure.extensions.gardener.cloud "i" is invalid: spec.region: Required value: field is required'
        )
        assert [cause["field"] for cause in refused.value.causes] == ["spec.region"]
    cluster.api.create(collection, infrastructure("i"))
    with pytest.raises(Invalid, match="spec.region: Invalid value: .*: field is immutable"):
        cluster.api.patch(f"{collection}/i", {"spec": {"region": "other"}})
    cluster.api.patch(f"{collection}/i", {"metadata": {"labels": {"a": "b"}}})


# --- an instance for another cluster


def test_a_target_instance_looks_after_system_components_only(
    cluster: Cluster, server: WebhookProcess, new_namespace: NewNamespace
) -> None:
    """Here both kinds serve one cluster, as in a seed that is a shoot."""
    elsewhere = f"/api/v1/namespaces/{new_namespace(labels={})}/pods"
    system = with_account(cluster, "kube-system")
    managed = {"resources.gardener.cloud/managed-by": "gardener"}
    before = dry_run(cluster, system, spread_pod("p", **managed))
    assert not has_seccomp_profile(before)

    assert "gardener-resource-manager-shoot: created" in install(server, cluster, "--mode=target")
    eventually(lambda: has_seccomp_profile(dry_run(cluster, system, spread_pod("p"))))
    unmanaged, changed = (dry_run(cluster, system, spread_pod("p", **labels)) for labels in ({}, managed))
    hashes = [
        "pod-template-hash" in each["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]
        for each in (unmanaged, changed)
    ]
    assert hashes == [False, True]
    assert changed["spec"]["nodeSelector"] == {"for": "system"}
    assert not has_seccomp_profile(dry_run(cluster, elsewhere, pod("p")))
    assert is_untouched(dry_run(cluster, system, spread_pod("p", **managed, **OURS)))
