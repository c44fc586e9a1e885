"""How pods become processes of this computer: their files, addresses and arguments, by tables."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube.objects import Object
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from localprocesses.local import PATIENT
from localprovider.runner.addresses import Here
from localprovider.runner.commands import GARDENLET, PROGRAMS, RESOURCE_MANAGER, without_pods
from localprovider.runner.conditions import condition
from localprovider.runner.deployments import SIMULATED, not_run
from localprovider.runner.places import Places
from localprovider.runner.probes import probe_of
from localprovider.runner.volumes import MissingSource, files
from localprovider.seeds.configuration import with_token_file

CONTAINER: Object = {
    "volumeMounts": [
        {"name": "tls", "mountPath": "/srv/tls"},
        {"name": "kubeconfig", "mountPath": "/var/run/kubeconfig"},
        {"name": "config", "mountPath": "/etc/config"},
    ]
}
POD: Object = {
    "volumes": [
        {"name": "tls", "secret": {"secretName": "server-a1"}},
        {"name": "config", "configMap": {"name": "settings-b2"}},
        {"name": "not-mounted", "secret": {"secretName": "missing"}},
        {
            "name": "kubeconfig",
            "projected": {
                "sources": [
                    {"secret": {"name": "access", "items": [{"key": "token", "path": "token"}]}},
                    {"secret": {"name": "optional", "optional": True}},
                    {"serviceAccountToken": {"path": "other"}},
                ]
            },
        },
    ]
}


def _encoded(**data: str) -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}


SOURCES: dict[tuple[Resource, str], Object] = {
    (SECRETS, "server-a1"): {"immutable": True, "data": _encoded(crt="c")},
    (SECRETS, "access"): {"data": _encoded(token="t", more="m")},
    (CONFIG_MAPS, "settings-b2"): {"immutable": True, "data": {"a.yaml": "a: 1"}},
}


def _find(resource: Resource, name: str) -> Object | None:
    return SOURCES.get((resource, name))


def test_files_of_a_pod() -> None:
    found = {each.path: (each.content, each.is_fixed) for each in files(POD, CONTAINER, _find)}
    assert found == {
        "/srv/tls/crt": (b"c", True),
        "/etc/config/a.yaml": (b"a: 1", True),
        "/var/run/kubeconfig/token": (b"t", False),
    }


@pytest.mark.parametrize(
    ("name", "obj", "reported"),
    [("access", None, "Secret access does not exist yet"), ("access", {"data": {}}, "Secret access has no token yet")],
)
def test_pod_waits_for_its_files(name: str, obj: Object | None, reported: str) -> None:
    def find(resource: Resource, wanted: str) -> Object | None:
        return obj if wanted == name else _find(resource, wanted)

    with pytest.raises(MissingSource, match=reported):
        files(POD, CONTAINER, find)


HERE = Here(Path("/a-state/root"), ("/srv/tls", "/srv"), "shoot--a", {"kube-apiserver": 1234, "etcd-main-client": 99})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--key=/srv/tls/tls.key", "--key=/a-state/root/srv/tls/tls.key"),
        ("/srv", "/a-state/root/srv"),
        ("/srvx /other/srv", "/srvx /other/srv"),
        ("tokenFile: /srv/token", "tokenFile: /a-state/root/srv/token"),
        ("--log=/tmp/audit/a.log", "--log=/a-state/root/tmp/audit/a.log"),
        ("https://etcd-main-client:2379", "https://127.0.0.1:99"),
        ("/events#https://etcd-main-client:2379", "/events#https://127.0.0.1:99"),
        ("server: https://kube-apiserver", "server: https://127.0.0.1:1234"),
        ("https://kube-apiserver.shoot--a.svc.cluster.local:443/x", "https://127.0.0.1:1234/x"),
        ("https://kube-apiserver.shoot--b.svc", "https://kube-apiserver.shoot--b.svc"),
        ("https://kube-apiserver-other", "https://kube-apiserver-other"),
    ],
)
def test_addresses(text: str, expected: str) -> None:
    assert HERE.text(text) == expected


def test_what_is_no_text_stays() -> None:
    assert HERE.content(b"\xff/srv") == b"\xff/srv"


@pytest.mark.parametrize(
    ("program", "connection", "ports"),
    [
        (RESOURCE_MANAGER, "sourceClientConnection", {"webhooks": RESOURCE_MANAGER}),
        (GARDENLET, "seedClientConnection", {}),
    ],
)
def test_configuration_of_a_program_of_ours(program: str, connection: str, ports: dict[str, str]) -> None:
    config = PROGRAMS[program].config
    assert config is not None
    given = {"kind": config.kind, "server": {"metrics": {"port": 8080}}, connection: {"namespaces": ["n"]}}
    serves = {"healthProbes": f"{program}-health", "metrics": f"{program}-metrics"} | ports
    numbers = {name: number for number, name in enumerate(serves.values())}
    read = config.read(json.dumps(given).encode(), here=HERE, files={})
    written = config.served(read, ports=numbers, seed_kubeconfig=Path("/k"))
    assert yaml.safe_load(written) == {
        "kind": config.kind,
        "server": {field: {"bindAddress": "127.0.0.1", "port": numbers[name]} for field, name in serves.items()},
        connection: {"namespaces": ["n"], "kubeconfig": "/k"},
        "leaderElection": PATIENT,
    }


def test_what_makes_pods_is_off_in_a_seed() -> None:
    command = ["kube-controller-manager", "--controllers=*,-ttl", "--leader-elect=false"]
    off = "--controllers=*,-ttl,-deployment-controller,-replicaset-controller"
    assert without_pods(command) == [command[0], off, command[2]]


def test_a_token_is_in_a_file_where_it_can_be_renewed() -> None:
    given = {"users": [{"name": "u", "user": {"token": "secret"}}], "current-context": "c"}
    kubeconfig, token = with_token_file(yaml.safe_dump(given).encode())
    assert token == b"secret"
    assert yaml.safe_load(kubeconfig) == {**given, "users": [{"name": "u", "user": {"tokenFile": "token"}}]}


@pytest.mark.parametrize(
    ("container", "url", "headers"),
    [
        (
            {
                "readinessProbe": {
                    "httpGet": {"path": "/readyz", "scheme": "HTTPS", "httpHeaders": [{"name": "A", "value": "b"}]}
                }
            },
            "https://127.0.0.1:7/readyz",
            {"A": "b"},
        ),
        ({"livenessProbe": {"httpGet": {"path": "/healthz"}}}, "http://127.0.0.1:7/healthz", {}),
    ],
)
def test_probe(container: Object, url: str, headers: dict[str, str]) -> None:
    found = probe_of(container, 7)
    assert found is not None
    assert (found.url, found.headers) == (url, headers)
    assert "headers" not in repr(found)


def test_no_probe() -> None:
    assert probe_of({}, 7) is None


def test_condition_keeps_its_time() -> None:
    first = condition({}, "Ready", is_true=False, reported="x", now="1")
    again: Any = condition({"status": {"conditions": [first]}}, "Ready", is_true=False, reported="x", now="2")
    assert again == first
    later = condition({"status": {"conditions": [first]}}, "Ready", is_true=True, reported="", now="2")
    assert (later["status"], later["lastTransitionTime"]) == ("True", "2")


def test_ports_stay(tmp_path: Path) -> None:
    places = Places(tmp_path)
    first = places.port("a", "kube-apiserver")
    assert Places(tmp_path).port("a", "kube-apiserver") == first
    assert places.port("a", "other") != first
    assert Places(tmp_path).namespaces() == ["a"]
    places.forget("a")
    assert places.ports("a") == {}


@pytest.mark.parametrize(
    ("replicas", "annotations", "is_problem"),
    [(1, {}, True), (0, {}, False), (1, {SIMULATED: "true"}, False), (1, {SIMULATED: "false"}, True)],
)
def test_a_program_of_an_extension_is_reported_until_its_user_runs_it(
    replicas: int, annotations: Object, is_problem: bool
) -> None:
    pod = {"containers": [{"image": "calico:v1"}]}
    found = not_run(
        {
            "metadata": {"name": "calico", "namespace": "extension-calico", "annotations": annotations},
            "spec": {"replicas": replicas, "template": {"spec": pod}},
        }
    )
    assert bool(found) is is_problem
    if is_problem:
        command = f"kubectl annotate deployment calico -n extension-calico --overwrite {SIMULATED}=true"
        assert "start the program of calico:v1" in found
        assert found.endswith(command)
