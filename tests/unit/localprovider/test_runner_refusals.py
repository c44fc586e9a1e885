"""What a Deployment, an Etcd or a BackupEntry may not make the runner do, independent of its author."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.shoot_components import (
    WITH_ALL_SETTINGS,
    api_server_arguments,
    controller_manager_arguments,
    scheduler_arguments,
)
from kube.objects import Key, Object
from localprocesses.components import APISERVER, CONTROLLER_MANAGER, SCHEDULER
from localprocesses.confined import Confined, OutsideError
from localprocesses.local import LocalProcessError
from localprocesses.versions import NEWEST
from localprovider.extensions.state import BucketAway as NoBucket
from localprovider.extensions.state import State
from localprovider.runner import commands
from localprovider.runner.addresses import Here
from localprovider.runner.commands import GARDENLET, MACHINES, OF_SHOOTS, PROGRAMS, RESOURCE_MANAGER
from localprovider.runner.confinement import confinement
from localprovider.runner.deployments import prepared
from localprovider.runner.flags import (
    APISERVER_FLAGS,
    CONTROLLER_MANAGER_FLAGS,
    SCHEDULER_FLAGS,
    Rule,
    read,
    variables,
    without_effect,
)
from localprovider.runner.places import Places
from localprovider.runner.probes import probe_of
from localprovider.runner.snapshots import BucketAway, directory_of
from localprovider.runner.volumes import File, Refused, files, mounts
from localprovider.seeds.reconcile import may_be_seed

PORTS = {"kube-apiserver": 1, "etcd-main-client": 2, "etcd-events-client": 3}
HERE = Here(Path("/own/root"), ("/etc/k", "/srv/kubernetes", "/var", "/etc/kubernetes"), "shoot--a", PORTS)
RULES: dict[str, Mapping[str, Rule]] = {
    APISERVER: APISERVER_FLAGS,
    CONTROLLER_MANAGER: CONTROLLER_MANAGER_FLAGS,
    SCHEDULER: SCHEDULER_FLAGS,
}


# --- flags


@pytest.mark.parametrize("authentication", ["kind: A", ""], ids=["by file", "by flags"])
def test_flags_of_the_gardenlet_are_allowed(authentication: str) -> None:
    given = api_server_arguments(NEWEST, {**WITH_ALL_SETTINGS, "authentication": authentication})
    read(given, APISERVER_FLAGS, HERE)
    read(controller_manager_arguments(NEWEST), CONTROLLER_MANAGER_FLAGS, HERE)
    read(scheduler_arguments(NEWEST), SCHEDULER_FLAGS, HERE)


@pytest.mark.parametrize(
    ("program", "argument"),
    [
        (SCHEDULER, "--write-config-to=/etc/k/x"),
        (SCHEDULER, "--config=relative"),
        (SCHEDULER, "--config"),
        (SCHEDULER, "--log-file=/tmp/x"),
        (SCHEDULER, "--log_dir=/tmp"),
        (CONTROLLER_MANAGER, "--kubeconfig=/home/a/.kube/config"),
        (CONTROLLER_MANAGER, "--kubeconfig=/etc/k/../../home"),
        (CONTROLLER_MANAGER, "--kubeconfig=/etc/kx/file"),
        (CONTROLLER_MANAGER, "--kube_config=/etc/k/x"),
        (CONTROLLER_MANAGER, "--enable-hostpath-provisioner"),
        (CONTROLLER_MANAGER, "--pv-recycler-pod-template-filepath-nfs=/etc/k/x"),
        (CONTROLLER_MANAGER, "--external-cloud-volume-plugin=x"),
        (CONTROLLER_MANAGER, "--cloud-config=/etc/k/x"),
        (CONTROLLER_MANAGER, "--controllers=*\n--x"),
        (APISERVER, "--audit-log-path=/etc/x"),
        (APISERVER, "--audit-log-path=/tmp/../x"),
        (APISERVER, "--audit-log-path=audit.log"),
        (APISERVER, "--audit-log-path=-"),
        (APISERVER, "--token-auth-file=/etc/passwd"),
        (APISERVER, "--tls-sni-cert-key=/a,/b"),
        (APISERVER, "--etcd-servers=unix:///run/x"),
        (APISERVER, "--etcd-servers=https://example.com"),
        (APISERVER, "--etcd-servers=https://kube-apiserver"),
        (APISERVER, "--etcd-servers-overrides=/events#https://example.com"),
        (APISERVER, "--audit-webhook-config-file=/etc/k/x"),
        (APISERVER, "--authorization-config=/etc/k/x"),
        (APISERVER, "--tracing-config-file=/etc/k/x"),
        (APISERVER, "--v=10000000000"),
        (APISERVER, "-v=2"),
        (APISERVER, "positional"),
    ],
)
def test_what_is_not_listed_is_refused(program: str, argument: str) -> None:
    with pytest.raises(Refused):
        read([argument], RULES[program], HERE)


@pytest.mark.parametrize(
    ("program", "flag"),
    [
        *((each, flag) for each in RULES for flag in ("bind-address", "cert-dir", "secure-port")),
        (CONTROLLER_MANAGER, "flex-volume-plugin-dir"),
        (APISERVER, "audit-log-maxbackup"),
        (APISERVER, "egress-selector-config-file"),
    ],
)
def test_where_it_listens_and_writes_is_decided_here(program: str, flag: str) -> None:
    assert read([f"--{flag}=/elsewhere"], RULES[program], HERE) == []


def test_what_it_writes_is_below_its_own_root(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = {APISERVER: 7, CONTROLLER_MANAGER: 8, SCHEDULER: 9}
    monkeypatch.setattr(commands, "find", lambda *_: _Assets())
    for program in RULES:
        called = PROGRAMS[program].call({"image": f"x:v{NEWEST}", "command": ["/bin/sh", "--v=1"]}, HERE, ports)
        assert called[0] == f"/bin/{program}"
        assert "--cert-dir=/own/root/tmp/certificates" in called
        assert {"--bind-address=127.0.0.1", f"--secure-port={ports[program]}"} <= {*called}
    assert "--flex-volume-plugin-dir=/own/root/tmp/plugins" in PROGRAMS[CONTROLLER_MANAGER].call(
        {"image": f"x:v{NEWEST}"}, HERE, ports
    )


class _Assets:
    apiserver, controller_manager, scheduler = (Path("/bin") / each for each in RULES)


def test_programs_of_ours_get_their_configuration_and_no_other_flag() -> None:
    for program in (GARDENLET, RESOURCE_MANAGER):
        call = PROGRAMS[program].call
        called = call({"args": ["--config=/etc/k/c"]}, HERE, {})
        assert called[-3:] == ["-m", "agent", "--config=/own/root/etc/k/c"]
        for container in (
            {"args": ["--config=/etc/passwd"]},
            {"args": ["--config=/etc/k/c", "--metrics-bind-address=:80"]},
        ):
            with pytest.raises(Refused):
                call(container, HERE, {})


PERMITTED = [
    *((APISERVER, name, value) for name, value in (("GOGC", "50"), ("GOMEMLIMIT", "2GiB"), ("GOMAXPROCS", "2"))),
    (CONTROLLER_MANAGER, "KUBE_FEATURE_WatchListClient", "true"),
    (SCHEDULER, "KUBE_FEATURE_WatchListClient", "True"),
]


@pytest.mark.parametrize(("program", "name", "value"), PERMITTED)
def test_variables_of_the_list_reach_the_program(program: str, name: str, value: str) -> None:
    container = {"env": [{"name": name, "value": value}]}
    assert variables(container, PROGRAMS[program].variables, HERE) == {name: value}
    assert without_effect({"containers": [container]}, PROGRAMS[program].variables) == []


def test_files_in_variables_are_mounted_ones() -> None:
    name = "IMAGEVECTOR_OVERWRITE"
    given = {"env": [{"name": name, "value": "/etc/k/c"}]}
    assert variables(given, PROGRAMS[GARDENLET].variables, HERE) == {name: "/own/root/etc/k/c"}


@pytest.mark.parametrize(
    ("program", "name", "value"),
    [
        (GARDENLET, "IMAGEVECTOR_OVERWRITE", "/etc/passwd"),
        (APISERVER, "GOMAXPROCS", "two"),
        (APISERVER, "GOMAXPROCS", "20000"),
        (APISERVER, "GOGC", "off"),
        (SCHEDULER, "KUBE_FEATURE_WatchListClient", "/tmp"),
    ],
)
def test_values_of_variables_are_checked(program: str, name: str, value: str) -> None:
    with pytest.raises(Refused, match=f"variable {name}: "):
        variables({"env": [{"name": name, "value": value}]}, PROGRAMS[program].variables, HERE)


@pytest.mark.parametrize("program", [*RULES, GARDENLET, RESOURCE_MANAGER, MACHINES])
def test_what_has_no_effect_is_reported(program: str) -> None:
    """Variables by which a program could be made to run another, values from elsewhere, and further containers."""
    names = (
        "LD_PRELOAD",
        "KUBECONFIG",
        "PATH",
        "PYTHONPATH",
        "GOCOVERDIR",
        "SSL_CERT_FILE",
        "XGOGC",
        "GOGCX",
        "GODEBUG",
    )
    given = [
        *({"name": each, "value": "/tmp/x"} for each in names),
        {"name": "GOMAXPROCS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    first = {"name": "a", "env": given, "envFrom": [{"secretRef": {"name": "s"}}]}
    pod = {"containers": [first, {"name": "b"}], "initContainers": [{"name": "c"}]}
    assert variables(first, PROGRAMS[program].variables, HERE) == {}
    assert without_effect(pod, PROGRAMS[program].variables) == [
        *(f"variable {each}" for each in (*names, "GOMAXPROCS")),
        *("envFrom", "container b", "init container c"),
    ]


def test_what_plays_machines_needs_a_kubeconfig_that_is_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "find", lambda *_: type("Assets", (), {"kwok": Path("/bin/kwok")}))
    for command in ([], ["x", "--target-kubeconfig=/home/a"], ["x", *["--target-kubeconfig=/etc/k/c"] * 2]):
        with pytest.raises(Refused):
            PROGRAMS[MACHINES].call({"command": command}, HERE, {MACHINES: 1})


# --- configuration of programs of ours


def configured(program: str, files: Mapping[str, bytes], **config: Any) -> Object:
    given = PROGRAMS[program].config
    assert given is not None
    content = yaml.safe_dump({"kind": given.kind, **config}).encode()
    read = given.read(content, here=HERE, files=files)
    written = given.served(read, ports=dict.fromkeys(given.servers.values(), 7), seed_kubeconfig=Path("/seed"))
    return dict(yaml.safe_load(written))


EXEC = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never"}}


def kubeconfig(**user: Any) -> bytes:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": "https://a"}}],
        "users": [{"name": "a", "user": user}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    return yaml.safe_dump(content).encode()


@pytest.mark.parametrize(
    "config",
    [
        {"kind": "SchedulerConfiguration"},
        {"targetClientConnection": {"kubeconfig": "/home/a/.kube/config"}},
        {"targetClientConnection": {"kubeconfig": "/etc/k/exec"}},
        {"targetClientConnection": {"kubeconfig": "/etc/k/token"}},
        {"targetClientConnection": {"kubeconfig": "/etc/k/missing"}},
        {"server": {"webhooks": {"tls": {"serverCertDir": "/etc"}}}},
        {"server": {"webhooks": {"tls": {"clientCAFile": "/etc/passwd"}}}},
    ],
)
def test_a_configuration_names_no_file_that_is_not_mounted(config: dict[str, Any]) -> None:
    root = f"{HERE.root}/etc/k"
    files = {f"{root}/exec": kubeconfig(**EXEC), f"{root}/token": kubeconfig(tokenFile="/home/a/token")}
    with pytest.raises(Refused):
        configured(RESOURCE_MANAGER, files, **config)


def test_a_configuration_has_only_servers_and_connections_of_this_computer() -> None:
    own = {"kubeconfig": "/etc/k/own"}
    root = f"{HERE.root}/etc/k"
    files = {f"{root}/own": kubeconfig(tokenFile=f"{root}/token"), f"{root}/token": b"t"}
    found = configured(
        RESOURCE_MANAGER,
        files,
        targetClientConnection=own,
        sourceClientConnection={"kubeconfig": "/home/a"},
        tracing={"enabled": True, "endpoint": "http://127.0.0.1:1"},
        server={"statusPage": {"port": 80}, "metrics": {"bindAddress": "0.0.0.0", "port": 80}},
    )
    assert found["targetClientConnection"] == {"kubeconfig": "/own/root/etc/k/own"}
    assert found["sourceClientConnection"] == {"kubeconfig": "/seed"}
    assert found["server"]["metrics"] == {"bindAddress": "127.0.0.1", "port": 7}
    assert {"tracing", "statusPage"}.isdisjoint({*found, *found["server"]})


# --- what its process reads


def prepare(program: str, container: Object, **files: bytes) -> dict[str, bytes]:
    """Its files, by path; `--` in a name is a slash."""
    found = [File(f"/{name.replace('--', '/')}", content, is_fixed=False) for name, content in files.items()]
    ports = dict.fromkeys(PROGRAMS[program].servers, 7)
    _, prepared_files = prepared(PROGRAMS[program], container, HERE, found, ports, seed_kubeconfig=Path("/seed"))
    return {each.path: each.content for each in prepared_files}


ESCAPED = kubeconfig(tokenFile="/etc/k/passwd").replace(b"/etc/k/passwd", rb'"\x2fetc\x2fk\x2fpasswd"')
"""Reads like a path of the container, in which no path of this computer was entered."""


def test_a_path_in_a_file_is_one_below_the_root_however_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "find", lambda *_: _Assets())
    container = {"image": f"x:v{NEWEST}", "args": ["--kubeconfig=/etc/k/own"]}
    own, passwd = kubeconfig(tokenFile="/etc/k/passwd"), b"t"
    found = prepare(CONTROLLER_MANAGER, container, **{"etc--k--own": own, "etc--k--passwd": passwd})
    assert b"tokenFile: /own/root/etc/k/passwd" in found["/etc/k/own"]
    with pytest.raises(Refused, match="tokenFile"):
        prepare(CONTROLLER_MANAGER, container, **{"etc--k--own": ESCAPED, "etc--k--passwd": passwd})


def resource_manager(kubeconfig_file: str) -> bytes:
    connection = {"kubeconfig": kubeconfig_file}
    return yaml.safe_dump({"kind": "ResourceManagerConfiguration", "targetClientConnection": connection}).encode()


def test_the_configuration_of_a_program_of_ours_is_the_file_that_it_reads() -> None:
    container = {"args": ["--config=/etc/k/other.yaml"]}
    config = resource_manager("/etc/k/own")
    found = prepare(RESOURCE_MANAGER, container, **{"etc--k--other.yaml": config, "etc--k--own": kubeconfig(token="t")})
    assert b"kubeconfig: /seed" in found["/etc/k/other.yaml"]
    for args, given in (
        (container["args"], {"etc--k--other.yaml": resource_manager("/home/a/.kube/config")}),
        (container["args"], {"etc--k--other.yaml": config, "etc--k--own": ESCAPED, "etc--k--passwd": b"t"}),
        (container["args"], {"etc--k--own": kubeconfig(token="t")}),
        ([], {"etc--k--other.yaml": config}),
        ([*container["args"], "--config=/etc/k/own"], {"etc--k--other.yaml": config, "etc--k--own": config}),
    ):
        with pytest.raises(Refused):
            prepare(RESOURCE_MANAGER, {"args": args}, **given)


# --- files of a pod


def pod(mount: Object, **volume: Any) -> tuple[Object, Object]:
    named = {"name": "v", "secret": {"secretName": "s", **volume}}
    return {"volumes": [named]}, {"volumeMounts": [{"name": "v", **mount}]}


@pytest.mark.parametrize(
    ("mount", "volume"),
    [
        ({"mountPath": "/../../../tmp/x"}, {}),
        ({"mountPath": "/etc/../../x"}, {}),
        ({"mountPath": "relative"}, {}),
        ({"mountPath": ""}, {}),
        ({"mountPath": "/"}, {}),
        ({"mountPath": "//etc"}, {}),
        ({"mountPath": "/etc/./k"}, {}),
        ({"mountPath": "/etc/\0"}, {}),
        ({"mountPath": "/etc/k", "subPath": "../x"}, {}),
        ({"mountPath": "/etc/k", "subPathExpr": "$(X)"}, {}),
        ({"mountPath": "/etc/k"}, {"items": [{"key": "a", "path": "../../x"}]}),
        ({"mountPath": "/etc/k"}, {"items": [{"key": "a", "path": "/x"}]}),
        ({"mountPath": "/etc/k"}, {"items": [{"key": "a", "path": "x/.."}]}),
        ({"mountPath": "/etc/k"}, {"items": [{"key": "a", "path": "x"}, {"key": "a", "path": "X"}]}),
        ({"mountPath": "/etc/k"}, {"items": [{"key": "a", "path": f"{number}"} for number in range(501)]}),
        ({"mountPath": "/etc/k"}, {"items": [{"key": "large", "path": f"{number}"} for number in range(17)]}),
    ],
)
def test_files_of_a_pod_stay_below_its_root(mount: Object, volume: Object) -> None:
    spec, container = pod(mount, **volume)
    data = {"a": "", "large": base64.b64encode(bytes(1 << 20)).decode()}
    with pytest.raises(Refused):
        files(spec, container, lambda *_: {"data": data})
        mounts(container)


def test_a_path_of_the_host_is_no_file_of_a_pod() -> None:
    volumes = [{"name": "v", "hostPath": {"path": "/etc"}}]
    assert files({"volumes": volumes}, {"volumeMounts": [{"name": "v", "mountPath": "/etc/k"}]}, lambda *_: None) == []


# --- buckets and places


@pytest.mark.parametrize("bucket", ["/outside", "../outside", "..", "a/../../outside", "", "link", "a/b/c", "a\0"])
def test_a_bucket_is_a_directory_below_the_buckets(tmp_path: Path, bucket: str) -> None:
    outside, state = tmp_path / "outside", State(tmp_path / "state")
    (outside / "entry").mkdir(parents=True)
    state.buckets.root.mkdir(parents=True)
    (state.buckets.root / "link").symlink_to(outside)
    state.bucket("own", is_new=True)
    (state.buckets.root / "own" / "link").symlink_to(outside)
    name = bucket.replace("/outside", str(outside)) if bucket.startswith("/") else bucket
    for call in (
        lambda: state.entry(name, "new", is_new=True),
        lambda: state.entry(name, "entry", is_new=False),
        lambda: state.remove_entry(name, "entry"),
        lambda: state.entry("own", name, is_new=True),
        lambda: state.bucket(name, is_new=True),
        lambda: state.remove_bucket(f"{name}/entry"),
    ):
        with pytest.raises((OutsideError, NoBucket)):
            call()
    assert [each.name for each in outside.iterdir()] == ["entry"]


@pytest.mark.parametrize("number", [-1, 0, 63, 128, 10**30])
def test_a_network_that_an_object_claims_is_one_of_those_that_there_are(tmp_path: Path, number: int) -> None:
    assert State(tmp_path).take_network("a", wanted=number) == 64


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        ("/etc", "x/etcd-main"),
        ("{root}", "x/etcd-main"),
        ("{root}/bucket", "x/etcd-main"),
        ("{root}/../elsewhere/entry", "x/etcd-main"),
        ("{root}/bucket/..", "x/etcd-main"),
        ("{root}/bucket/entry/more", "x/etcd-main"),
        ("{root}-other/bucket/entry", "x/etcd-main"),
        ("{root}/bucket/entry", "x/.."),
        ("{root}/bucket/entry", ""),
        ("{root}/link/entry", "x/etcd-main"),
        ("{root}/bucket/link", "x/etcd-main"),
    ],
)
def test_snapshots_are_in_an_entry_of_a_bucket(tmp_path: Path, path: str, prefix: str) -> None:
    root, outside = tmp_path / "buckets", tmp_path / "outside"
    for each in (root / "bucket" / "entry", outside / "entry"):
        each.mkdir(parents=True)
    for each in (root / "link", root / "bucket" / "link"):
        each.symlink_to(outside)
    secret = {"data": {"hostPath": base64.b64encode(path.format(root=root).encode()).decode()}}
    with pytest.raises(BucketAway):
        directory_of(Confined(root), secret, Key("n", "s"), prefix).snapshots()


def test_so_many_namespaces_have_processes(tmp_path: Path) -> None:
    places = Places(tmp_path, most=2)
    for namespace in ("a", "b"):
        places.port(namespace, "kube-apiserver")
    for call in (lambda: places.port("c", "kube-apiserver"), lambda: places.of_pod("c", "etcd-main")):
        with pytest.raises(LocalProcessError, match="2 Shoots"):
            call()
    places.forget("a")
    assert places.of_pod("c", "etcd-main").is_dir()


# --- who is run


def test_only_shoots_of_the_garden_may_be_seeds() -> None:
    def cluster(namespace: object) -> Object:
        return {"spec": {"shoot": {"metadata": {"namespace": namespace}}}}

    assert may_be_seed(cluster("garden"))
    assert not any(map(may_be_seed, [cluster("garden-dev"), cluster(""), cluster(None), {}]))


def test_in_namespaces_of_shoots_no_gardenlet_is_run() -> None:
    assert GARDENLET not in OF_SHOOTS


@pytest.mark.parametrize("path", ["@example.com/", ".example.com", ":1@example.com/"])
def test_a_probe_queries_this_computer_alone(path: str) -> None:
    found = probe_of({"readinessProbe": {"httpGet": {"path": path, "scheme": "FTP"}}}, 7)
    assert found is not None
    assert found.url.startswith("http://127.0.0.1:7/")


# --- files of the host


def test_a_text_of_a_tenant_gives_no_access_to_a_file() -> None:
    arguments = read(["--oidc-client-id=/home/user/.ssh"], APISERVER_FLAGS, HERE)
    assert arguments == ["--oidc-client-id=/home/user/.ssh"]
    allowed = confinement(["/programs/kube-apiserver", *arguments], own=Path("/own"))
    assert "/home/user/.ssh" not in {*allowed.reads, *allowed.writes, *allowed.runs}
