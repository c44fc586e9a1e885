"""Through a real API server, a pod comes out of the combined webhook as it does out of the separate ones."""

import contextlib
import datetime
import os
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from agent_process import free_port

from config.load import decode
from devcluster.cluster import Cluster
from kube.errors import ApiError, NotFound
from kube.objects import Object
from webhooks.certificates import files
from webhooks.certificates.pairs import make_ca, make_serving
from webhooks.configurations.entries import Instance, Mode
from webhooks.configurations.objects import MUTATING, CaBundle, Url, configurations, name_of

DAY = datetime.timedelta(days=1)
WEBHOOKS: Object = {
    "kubernetesServiceHost": {"enabled": True, "host": "api.example.com"},
    "podSchedulerName": {"enabled": True, "schedulerName": "bin-packing-scheduler"},
    "podTopologySpreadConstraints": {"enabled": True},
    "projectedTokenMount": {"enabled": True},
    "seccompProfile": {"enabled": True},
    "systemComponentsConfig": {
        "enabled": True,
        "nodeSelector": {"nobody.invalid/has": "it"},
        "podTolerations": [{"key": "t", "operator": "Exists"}],
    },
}
CONSIDERED = {
    "gardener.cloud/role": "x",
    "system-components-config.resources.gardener.cloud/consider": "true",
}
NO_PROXY = {"apiserver-proxy.networking.gardener.cloud/inject": "disable"}


class Server:
    """The server as a process, with a certificate that API servers are told of."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        now = datetime.datetime.now(datetime.UTC)
        ca = make_ca("test", now=now, lifetime=DAY)
        self.ca = ca.certificate_pem
        files.write(directory / "certificates", make_serving(ca, ["127.0.0.1"], now=now, lifetime=DAY))
        self.port, self._probes, metrics = free_port(), free_port(), free_port()
        addresses = {
            "webhooks": {
                "bindAddress": "127.0.0.1",
                "port": self.port,
                "tls": {"serverCertDir": str(directory / "certificates")},
            },
            "healthProbes": {"bindAddress": "127.0.0.1", "port": self._probes},
            "metrics": {"bindAddress": "127.0.0.1", "port": metrics},
        }
        config = {
            "leaderElection": {"resourceNamespace": "default"},
            "server": addresses,
            "webhooks": WEBHOOKS,
        }
        (directory / "config.yaml").write_text(yaml.safe_dump(config))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "webhooks", "--config", str(directory / "config.yaml")],
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        )

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            assert self._process.poll() is None
            assert time.monotonic() < deadline
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self._probes}/readyz", timeout=10).close()
                return
            time.sleep(0.1)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path) -> Iterator[Server]:
    started = Server(cluster, tmp_path)
    try:
        started.wait_until_ready()
        yield started
    finally:
        started.stop()


def pod(name: str, *, app: str = "a", account: str = "default", **labels: str) -> Object:
    hash_label = {"pod-template-hash": "h1"}
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    return {
        "metadata": {"name": name, "labels": {"app": app, **hash_label, **labels}},
        "spec": {
            "serviceAccountName": account,
            "containers": [{"name": "c", "image": "i"}],
            "topologySpreadConstraints": [constraint],
        },
    }


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
    """The pod as the API server would store it, without what it makes up anew for each; or the refusal."""
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


def generated(server: Server, instance: Instance, namespaces: list[str], *, combined: bool) -> Object:
    webhooks = decode(yaml.safe_dump({"webhooks": WEBHOOKS})).config.webhooks
    address = Url(f"https://127.0.0.1:{server.port}")
    (obj,) = configurations(webhooks, instance, address=address, trust=CaBundle(server.ca), combined=combined)
    only_here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}
    for webhook in obj["webhooks"]:
        webhook["namespaceSelector"].setdefault("matchExpressions", []).append(only_here)
    return obj


def test_pods_come_out_the_same(cluster: Cluster, namespace: str, server: Server) -> None:
    cluster.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": CONSIDERED}})
    account = {"metadata": {"name": "mounts-none"}, "automountServiceAccountToken": False}
    cluster.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    instance = Instance(mode=Mode.RUNTIME, prefix=f"t{uuid.uuid4().hex[:8]}-")
    path = MUTATING.path(name=name_of(instance))
    results: dict[bool, list[Any]] = {}
    try:
        for combined in (False, True):
            cluster.api.apply(path, generated(server, instance, [namespace], combined=combined))
            wait_until_known(cluster, namespace)
            results[combined] = [outcome(cluster, namespace, obj) for obj in with_own_pods(instance.app)]
            with contextlib.suppress(NotFound):
                cluster.api.delete(path)
            wait_until_forgotten(cluster, namespace)
    finally:
        with contextlib.suppress(NotFound):
            cluster.api.delete(path)
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
    _wait(lambda: is_known(outcome(cluster, namespace, PODS[0])))


def wait_until_forgotten(cluster: Cluster, namespace: str) -> None:
    _wait(lambda: not is_scheduled(outcome(cluster, namespace, PODS[0])))


def _wait(holds: Any) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
