"""Through a real API server, a pod comes out of the combined webhook as it does out of the separate ones."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from config.resource_manager import decode
from devcluster.cluster import Cluster
from kit.eventually import PATIENCE, eventually
from kit.objects import obj
from kit.objects import pod as unlabelled
from kit.processes.webhooks import WebhookProcess
from kit.world import Place
from kube.errors import ApiError
from kube.objects import Object
from kube.resources import MUTATING_WEBHOOKS
from webhooks.configurations.objects import CaBundle, Url, name_of
from webhooks.configurations.registrations import configurations
from webhooks.rules.registration import Instance, Mode

WEBHOOKS: Object = {
    "kubernetesServiceHost": {"enabled": True, "host": "api.example.com"},
    "podSchedulerName": {"enabled": True, "schedulerName": "bin-packing-scheduler"},
    "podTopologySpreadConstraints": {"enabled": True},
    "projectedTokenMount": {"enabled": True},
    "seccompProfile": {"enabled": True},
    "systemComponentsConfig": {
        "enabled": True,
        "nodeSelector": {"unused.invalid/has": "it"},
        "podTolerations": [{"key": "t", "operator": "Exists"}],
    },
}
CONSIDERED = {
    "gardener.cloud/role": "x",
    "system-components-config.resources.gardener.cloud/consider": "true",
}
NO_PROXY = {"apiserver-proxy.networking.gardener.cloud/inject": "disable"}


@pytest.fixture
def server(cluster: Cluster) -> Iterator[WebhookProcess]:
    with WebhookProcess(WEBHOOKS, kubeconfig=cluster.kubeconfig) as process:
        yield process.wait_until_ready(seconds=PATIENCE)


def pod(name: str, *, app: str = "a", account: str = "default", **labels: str) -> Object:
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    labels = {"app": app, "pod-template-hash": "h1", **labels}
    return unlabelled(name, labels=labels, serviceAccountName=account, topologySpreadConstraints=[constraint])


PODS = [
    pod("plain"),
    pod("with-token", account="mounts-none"),
    pod("without-token", account="mounts-none", **{"projected-token-mount.resources.gardener.cloud/skip": ""}),
    pod("unconfined", **{"seccompprofile.resources.gardener.cloud/skip": "x"}),
    pod("no-proxy", **NO_PROXY),
    pod("static", **{"static-pod": "true"}),
    pod("not-spread", **{"topology-spread-constraints.resources.gardener.cloud/skip": "x"}),
]


def with_own_pods(app: str) -> list[Object]:
    return [*PODS, pod("our-own", app=app)]


def outcome(cluster: Cluster, namespace: str, obj: Object) -> Any:
    """The pod as the API server would store it, without what it makes up again for each; or the refusal."""
    try:
        stored = cluster.api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", obj)
    except ApiError as error:
        return error.status
    spec = stored["spec"]
    names = [volume["name"] for volume in spec.get("volumes") or []]
    random = next((n for n in names if n.startswith("kube-api-access-") and n != "kube-api-access-gardener"), None)
    return {"labels": stored["metadata"]["labels"], "spec": _without_random_names(spec, random)}


def _without_random_names(value: Any, name: str | None) -> Any:
    if isinstance(value, dict):
        return {key: _without_random_names(inner, name) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_random_names(inner, name) for inner in value]
    return "random" if value is not None and value == name else value


def generated(server: WebhookProcess, instance: Instance, namespaces: list[str], *, combined: bool) -> Object:
    webhooks = decode(yaml.safe_dump({"webhooks": WEBHOOKS})).config.webhooks
    address = Url(server.url)
    (obj,) = configurations(webhooks, instance, address=address, trust=CaBundle(server.certificate), combined=combined)
    only_here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}
    for webhook in obj["webhooks"]:
        webhook["namespaceSelector"].setdefault("matchExpressions", []).append(only_here)
    return obj


def test_pods_come_out_the_same(cluster: Cluster, namespace: str, server: WebhookProcess) -> None:
    place = Place(cluster, namespace)
    place.patch("Namespace", namespace, {"metadata": {"labels": CONSIDERED}})
    place.create(obj("ServiceAccount", "mounts-none", automountServiceAccountToken=False))
    instance = Instance(mode=Mode.RUNTIME, prefix=f"t{uuid.uuid4().hex[:8]}-")
    results: dict[bool, list[Any]] = {}
    try:
        for combined in (False, True):
            cluster.api.apply(
                place.path(MUTATING_WEBHOOKS, name_of(instance)),
                generated(server, instance, [namespace], combined=combined),
            )
            wait_until_known(cluster, namespace)
            results[combined] = [outcome(cluster, namespace, obj) for obj in with_own_pods(instance.app)]
            place.remove(MUTATING_WEBHOOKS, name_of(instance))
            wait_until_forgotten(cluster, namespace)
    finally:
        place.remove(MUTATING_WEBHOOKS, name_of(instance))
    assert results[True] == results[False]
    plain, with_token = results[True][:2]
    assert plain["spec"]["schedulerName"] == "bin-packing-scheduler"
    assert plain["spec"]["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert plain["spec"]["containers"][0]["env"] == [{"name": "KUBERNETES_SERVICE_HOST", "value": "api.example.com"}]
    assert "t" in [toleration.get("key") for toleration in plain["spec"]["tolerations"]]
    assert [volume["name"] for volume in with_token["spec"]["volumes"]] == ["kube-api-access-gardener"]
    assert results[True][-1]["spec"]["schedulerName"] == "default-scheduler", "our own pods are left alone"


def is_scheduled(found: Any) -> bool:
    return isinstance(found, dict) and found["spec"]["schedulerName"] == "bin-packing-scheduler"


def is_known(found: Any) -> bool:
    """The labels of the namespace, too, which the first of these webhooks does without."""
    return is_scheduled(found) and "seccompProfile" in (found["spec"].get("securityContext") or {})


def wait_until_known(cluster: Cluster, namespace: str) -> None:
    """All entries of a configuration come into effect at once, a moment after it was written."""
    eventually(lambda: is_known(outcome(cluster, namespace, PODS[0])))


def wait_until_forgotten(cluster: Cluster, namespace: str) -> None:
    eventually(lambda: not is_scheduled(outcome(cluster, namespace, PODS[0])))
