"""Every webhook at work: the server, certificates and configurations by the commands, and objects in a real cluster.

The cluster is one of this file's own, since webhooks are queried about everything in a cluster. All tests use one server.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from kit.eventually import eventually
from kit.kinds import custom_resource, definition_path, serve
from kit.objects import config_map, decoded, obj, pod, secret, service, workload
from kit.processes.webhooks import WebhookProcess
from kit.webhook_installation import (
    CRDS,
    DRY_RUN,
    NAMESPACE,
    OURS,
    ROLE,
    create_namespace,
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
from kube.resources import HORIZONTAL_POD_AUTOSCALERS

pytestmark = pytest.mark.timeout(600)

HIGH_AVAILABILITY = "high-availability-config.resources.gardener.cloud"
INFRASTRUCTURES = custom_resource("extensions.gardener.cloud", "Infrastructure", version="v1alpha1")
CONFIRMED: Object = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
VERTICAL_POD_AUTOSCALERS = custom_resource("autoscaling.k8s.io", "VerticalPodAutoscaler")

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

NewPlace = Callable[..., Place]
"""Makes a namespace with these `labels` and `annotations`."""


# --- a cluster with webhooks


@pytest.fixture(scope="module")
def cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as own:
        yield own


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[WebhookProcess]:
    create_namespace(cluster, NAMESPACE, labels=ROLE)
    taint = {"key": "dedicated", "value": "system", "effect": "NoSchedule"}
    Place(cluster, "").create(obj("Node", "n", labels={"for": "system"}, spec={"taints": [taint]}))
    serve(cluster, VERTICAL_POD_AUTOSCALERS, INFRASTRUCTURES)
    process = replica(WEBHOOKS, cluster)
    make_certificates(process, cluster)
    mount_certificate(process, cluster)
    with process:
        process.wait_until_ready()
        install_and_wait(process, cluster, requested="seccomp-profile")
        yield process


@pytest.fixture(autouse=True)
def _installed(server: WebhookProcess) -> None:
    """All tests are about what the server is queried."""


@pytest.fixture
def new_place(cluster: Cluster) -> NewPlace:
    def make(*, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> Place:
        place = Place(cluster, f"test-{uuid.uuid4().hex[:12]}")
        create_namespace(cluster, place.namespace, labels=ROLE if labels is None else labels, annotations=annotations)
        eventually(lambda: is_known(place))
        return place

    return make


def is_known(place: Place) -> bool:
    """Whether the server has heard of the namespace; it refuses what comes to it more than two seconds before."""
    with contextlib.suppress(ApiError):
        return bool(place.dry_run(web("w")) and place.dry_run(pod("p")))
    return False


# --- workloads


def web(name: str, kind: str = "Deployment", **labels: str) -> Object:
    return workload(kind, name, replicas=1, labels={f"{HIGH_AVAILABILITY}/type": "server", **labels})


CONSIDERED: dict[str, Any] = {
    "labels": {**ROLE, f"{HIGH_AVAILABILITY}/consider": "true"},
    "annotations": {f"{HIGH_AVAILABILITY}/failure-tolerance-type": "zone", f"{HIGH_AVAILABILITY}/zones": "a,b"},
}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_workloads_get_replicas_and_are_spread(new_place: NewPlace, kind: str) -> None:
    place = new_place(**CONSIDERED)
    given = web("w", kind)
    would_be = place.dry_run(given)
    assert place.find(kind, "w") is None
    created = place.create(given)
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
    updated = place.api.update(place.path(kind, "w"), {**given, "spec": spec})
    assert updated["spec"] == created["spec"], "what an update takes away comes back"
    assert place.patch(kind, "w", {"spec": {"replicas": 1}})["spec"]["replicas"] == 2
    assert place.patch(kind, "w", {"spec": {"replicas": 0}})["spec"]["replicas"] == 0, "hibernated"
    place.delete(kind, "w")


def test_an_autoscaler_decides_how_many_replicas_there_are(new_place: NewPlace) -> None:
    place = new_place(**CONSIDERED)
    place.create(web("scaled"))
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"},
        "minReplicas": 1,
        "maxReplicas": 5,
    }
    marks = {f"{HIGH_AVAILABILITY}/type": "server"}
    created = place.create(obj(HORIZONTAL_POD_AUTOSCALERS, "scaled", labels=marks, spec=spec))
    assert (created["spec"]["minReplicas"], created["spec"]["maxReplicas"]) == (2, 5)
    eventually(lambda: place.patch("Deployment", "scaled", {"spec": {"replicas": 4}})["spec"]["replicas"] == 4)
    # An older version that the rules do not name is converted for the webhook.
    v1 = replace(HORIZONTAL_POD_AUTOSCALERS, version="v1")
    older = place.create(obj(v1, "older", labels=marks, spec=spec), v1)
    assert older["spec"]["minReplicas"] == 2


def test_workloads_that_opted_out_and_other_namespaces_are_left_alone(new_place: NewPlace) -> None:
    considered, not_considered = new_place(**CONSIDERED), new_place()
    skipped = web("w", **{f"{HIGH_AVAILABILITY}/skip": "true"})
    for created in (considered.create(skipped), not_considered.create(web("w"))):
        assert created["spec"]["replicas"] == 1
        assert "topologySpreadConstraints" not in created["spec"]["template"]["spec"]


# --- pods


SYSTEM = {**ROLE, "system-components-config.resources.gardener.cloud/consider": "true"}


def spread_pod(name: str, **labels: str) -> Object:
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    constraint |= {"labelSelector": {"matchLabels": {"app": "a"}}}
    labels = {"app": "a", "pod-template-hash": "h", **labels}
    return pod(name, labels=labels, serviceAccountName="mounts-none", topologySpreadConstraints=[constraint])


def with_account(place: Place) -> Place:
    place.create(obj("ServiceAccount", "mounts-none", automountServiceAccountToken=False))
    return place


@pytest.fixture(params=["separate", "combined"], scope="module")
def entries(request: pytest.FixtureRequest, cluster: Cluster, server: WebhookProcess) -> str:
    """Pods come to one webhook after another, or to the one for all."""
    way: str = request.param
    if way == "combined":
        install_and_wait(server, cluster, "--combined", requested="pods")
    else:
        install_and_wait(server, cluster, requested="seccomp-profile")
    return way


@pytest.mark.usefixtures("entries")
def test_a_pod_gets_all_that_is_enabled(new_place: NewPlace) -> None:
    place = with_account(new_place(labels=SYSTEM))
    would_be = place.dry_run(spread_pod("p"))
    assert place.find("Pod", "p") is None
    created = place.create(spread_pod("p"))
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

    again = place.dry_run(obj("Pod", "q", labels=created["metadata"]["labels"], spec=created["spec"]))
    assert again["spec"] == created["spec"], "once is enough"
    relabelled = place.patch("Pod", "p", {"metadata": {"labels": {"more": "x"}}})
    assert relabelled["spec"] == created["spec"]
    place.api.delete(f"{place.path('Pod', 'p')}?gracePeriodSeconds=0")


@pytest.mark.usefixtures("entries")
def test_pods_that_opted_out_and_other_namespaces_are_left_alone(new_place: NewPlace) -> None:
    opted_out = {
        "apiserver-proxy.networking.gardener.cloud/inject": "disable",
        "projected-token-mount.resources.gardener.cloud/skip": "x",
        "seccompprofile.resources.gardener.cloud/skip": "x",
        "system-components-config.resources.gardener.cloud/skip": "x",
        "topology-spread-constraints.resources.gardener.cloud/skip": "x",
    }
    without_proxy = {"apiserver-proxy.networking.gardener.cloud/inject": "disable"}
    place, elsewhere = with_account(new_place(labels=SYSTEM)), with_account(new_place(labels=without_proxy))
    for created in (place.dry_run(spread_pod("p", **opted_out)), elsewhere.dry_run(spread_pod("p"))):
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
def test_our_own_pods_and_static_ones_are_never_queried_about(new_place: NewPlace, labels: dict[str, str]) -> None:
    created = with_account(new_place(labels=SYSTEM)).dry_run(spread_pod("p", **labels))
    assert created["spec"]["schedulerName"] == "default-scheduler"
    assert is_untouched(created)


def test_a_refusal_names_the_webhook_and_what_to_correct(new_place: NewPlace, entries: str) -> None:
    place = with_account(new_place())
    wrong = spread_pod("p")
    wrong["metadata"]["annotations"] = {"projected-token-mount.resources.gardener.cloud/expiration-seconds": "1h"}
    name = "pods" if entries == "combined" else "projected-token-mount"
    with pytest.raises(Forbidden) as refused:
        place.create(wrong)
    assert str(refused.value) == (
        f'admission webhook "{name}.resources.gardener.cloud" denied the request: annotation '
        '"projected-token-mount.resources.gardener.cloud/expiration-seconds": strconv.ParseInt: parsing "1h": invalid syntax'
    )


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize("app", ["a", OURS["app"]])
def test_clients_of_shoots_api_servers_learn_its_address(new_place: NewPlace, app: str) -> None:
    """Those of other instances, which are called as we are, too: they are in shoots' namespaces, and we are not."""
    istio, place = new_place(labels={}), new_place()
    address = istio.create(service("istio-ingressgateway-internal", ports=[{"port": 443}]))["spec"]["clusterIP"]
    settings = {"hosts": "api.internal,api.external", "istio-namespace": istio.namespace}
    place.create(config_map("istio-internal-load-balancing", settings))
    volume = {"name": "kubeconfig", "secret": {"secretName": "generic-token-kubeconfig-1"}}
    expected = [{"ip": address, "hostnames": ["api.internal", "api.external"]}]

    def aliases(**spec: Any) -> Any:
        try:
            return place.dry_run(pod("p", labels={"app": app}, **spec))["spec"].get("hostAliases")
        except NotFound:
            return None  # the watch has not seen the Service yet

    eventually(lambda: aliases(volumes=[volume]) == expected)
    assert aliases() is None


# --- other objects


def test_endpoints_are_hinted_to_their_zone(cluster: Cluster, new_place: NewPlace) -> None:
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{new_place().namespace}/endpointslices"
    endpoint = {"addresses": ["10.1.2.3"], "zone": "a"}
    given: Object = {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": [endpoint], "ports": []}
    assert "hints" not in cluster.api.create(slices, given)["endpoints"][0]
    considered = {"metadata": {"labels": {"endpoint-slice-hints.resources.gardener.cloud/consider": "true"}}}
    updated = cluster.api.patch(f"{slices}/s", considered)
    assert updated["endpoints"][0]["hints"] == {"forZones": [{"name": "a"}]}


def test_tokens_become_useless_and_are_renewed(new_place: NewPlace) -> None:
    place = new_place()
    label = "token-invalidator.resources.gardener.cloud/consider"
    marks = {"resources.gardener.cloud/purpose": "token-invalidator", label: "true"}
    of_account = {"kubernetes.io/service-account.name": "default"}
    place.create(secret("t", labels=marks, annotations=of_account, type="kubernetes.io/service-account-token"))
    eventually(lambda: place.get("Secret", "t").get("data", {}).get("token") == "AAAA")
    place.patch("Secret", "t", {"metadata": {"labels": {label: None}}})
    eventually(lambda: len(place.get("Secret", "t")["data"].get("token", "")) > 100)
    without = place.create(secret("other", {"token": "foo"}, labels={label: "true"}))
    assert decoded(without) == {"token": "foo"}, "without the purpose no webhook is queried"


@pytest.mark.parametrize(
    ("given", "expected"), [("Auto", "InPlaceOrRecreate"), (None, "InPlaceOrRecreate"), ("Initial", "Initial")]
)
def test_autoscalers_update_in_place(new_place: NewPlace, given: str | None, expected: str) -> None:
    place, kind = new_place(), VERTICAL_POD_AUTOSCALERS
    created = place.create(obj(kind, "v", spec={"updatePolicy": {"updateMode": given}} if given else {}), kind)
    assert created["spec"]["updatePolicy"]["updateMode"] == expected
    updated = place.patch(kind, "v", {"spec": {"updatePolicy": {"updateMode": "Recreate"}}})
    assert updated["spec"]["updatePolicy"]["updateMode"] == "InPlaceOrRecreate"


# --- what is refused


def infrastructure(name: str, *, region: str | None = "r", confirmed: bool = False) -> Object:
    spec = {"type": "t", "secretRef": {"name": "s", "namespace": "n"}, **({"region": region} if region else {})}
    return obj(INFRASTRUCTURES, name, spec=spec, **(CONFIRMED["metadata"] if confirmed else {}))


def refusal(error: ApiError) -> str:
    return str(error).partition("denied the request: ")[2]


def test_protected_definitions_are_deleted_only_after_a_user_confirmed_it(cluster: Cluster) -> None:
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


def test_extension_resources_are_deleted_only_after_a_user_confirmed_it(new_place: NewPlace) -> None:
    place = new_place(labels={})
    collection = place.path(INFRASTRUCTURES)
    place.create(infrastructure("a", confirmed=True), INFRASTRUCTURES)
    place.create(infrastructure("b"), INFRASTRUCTURES)
    message = 'must have a "confirmation.gardener.cloud/deletion" annotation to delete: Infrastructure '
    for request in (f"{collection}/b", f"{collection}/b{DRY_RUN}", collection):
        with pytest.raises(Forbidden) as refused:
            place.api.delete(request)
        assert refusal(refused.value) == f"{message}{place.namespace}/b"
    assert len(place.list(INFRASTRUCTURES)) == 2, "none of a collection goes before all are confirmed"
    place.api.delete(f"{collection}/a{DRY_RUN}")
    place.patch(INFRASTRUCTURES, "b", CONFIRMED)
    place.api.delete(collection)
    assert place.list(INFRASTRUCTURES) == []


def test_extension_resources_with_mistakes_are_refused(new_place: NewPlace) -> None:
    place = new_place(labels={})
    for create in (place.create, place.dry_run):
        with pytest.raises(Invalid) as refused:
            create(infrastructure("i", region=None), INFRASTRUCTURES)
        assert refusal(refused.value) == (
            'Infrastructure.extensions.gardener.cloud "i" is invalid: spec.region: Required value: field is required'
        )
        assert [cause["field"] for cause in refused.value.causes] == ["spec.region"]
    place.create(infrastructure("i"), INFRASTRUCTURES)
    with pytest.raises(Invalid, match="spec.region: Invalid value: .*: field is immutable"):
        place.patch(INFRASTRUCTURES, "i", {"spec": {"region": "other"}})
    place.patch(INFRASTRUCTURES, "i", {"metadata": {"labels": {"a": "b"}}})


# --- an instance for another cluster


def test_a_target_instance_looks_after_system_components_only(
    cluster: Cluster, server: WebhookProcess, new_place: NewPlace
) -> None:
    """Here both kinds serve one cluster, as in a seed that is a shoot."""
    elsewhere, system = new_place(labels={}), with_account(Place(cluster, "kube-system"))
    managed = {"resources.gardener.cloud/managed-by": "gardener"}
    assert not has_seccomp_profile(system.dry_run(spread_pod("p", **managed)))

    assert "gardener-resource-manager-shoot: created" in install(server, cluster, "--mode=target")
    eventually(lambda: has_seccomp_profile(system.dry_run(spread_pod("p"))))
    unmanaged, changed = (system.dry_run(spread_pod("p", **labels)) for labels in ({}, managed))
    hashes = [
        "pod-template-hash" in each["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]
        for each in (unmanaged, changed)
    ]
    assert hashes == [False, True]
    assert changed["spec"]["nodeSelector"] == {"for": "system"}
    assert not has_seccomp_profile(elsewhere.dry_run(pod("p")))
    assert is_untouched(system.dry_run(spread_pod("p", **managed, **OURS)))
