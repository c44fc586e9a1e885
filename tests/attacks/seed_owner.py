"""The owner of a Shoot that is a seed: objects in it that would reach the computer of the local provider.

    python -m tests.attacks.seed_owner                      # this checkout
    python -m tests.attacks.seed_owner --project DIRECTORY  # the local provider of another one

Each sort of object is forged in an API server of this program's own, which stands for that of the Shoot, and names a
directory of its own. A line a sort reports what is in that directory afterwards, which should be nothing. Programs that
run may be any that the provider knows; what they may do is to be seen from the files. Ends with 1 if there are any.
"""

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devcluster.cluster import Cluster
from gardener.api.druid import ETCDS
from gardener.api.extensions import BACKUP_BUCKETS, BACKUP_ENTRIES
from kit.seed_kinds import install_seed_kinds
from kube.objects import Object
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SECRETS
from localprocesses.ports import free_ports
from localprocesses.versions import NEWEST

PROJECT = Path(__file__).parents[2]
_LABELS = {"gardener.cloud/role": "shoot", "seed.gardener.cloud/provider": "local"}
_SECONDS = 25.0
_OUTSIDE = "/var/tmp"
_SCHEDULER, _MANAGER, _APISERVER = (f"kube-{each}" for each in ("scheduler", "controller-manager", "apiserver"))


@dataclass(slots=True)
class Forger:
    """Writes objects into a seed. Attributes: directory: in which each sort has one; seen: of those, the names."""

    cluster: Cluster
    directory: Path
    seen: list[str] = field(default_factory=list)

    def target(self, sort: str) -> Path:
        path = self.directory / sort.replace(" ", "-")
        path.mkdir()
        self.seen.append(sort)
        return path

    def namespace(self, name: str, *, of_shoot: bool = True) -> str:
        meta = {"name": name, "labels": _LABELS if of_shoot else {}}
        with suppress(Exception):
            self.cluster.api.create(NAMESPACES.path(), {**NAMESPACES.type_meta, "metadata": meta})
        return name

    def secret(self, namespace: str, name: str, data: dict[str, str]) -> None:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        meta = {"name": name, "namespace": namespace}
        self.cluster.api.create(
            SECRETS.path(namespace=namespace), {**SECRETS.type_meta, "metadata": meta, "data": encoded}
        )

    def deployment(self, namespace: str, name: str, *arguments: str, mount: str = "/etc/k", **volume: Any) -> None:
        mounted = {"name": "v", **(volume or {"secret": {"secretName": "s"}})}
        container = {
            "name": name,
            "image": f"x:v{NEWEST}",
            "command": [name],
            "args": arguments,
            "volumeMounts": [{"name": "v", "mountPath": mount}],
        }
        labels = {"app": name}
        spec = {"containers": [container], "volumes": [mounted]}
        body = {
            **DEPLOYMENTS.type_meta,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
        self.cluster.api.create(DEPLOYMENTS.path(namespace=namespace), body)


def kubeconfig(**user: Any) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": user}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    return json.dumps(content)


def _runs(path: Path) -> str:
    """A kubeconfig that would make a file. The provider replaces paths below /tmp: hence the quotes."""
    command = f"touch {str(path)[:2]}''{str(path)[2:]}/ran"
    version = "client.authentication.k8s.io/v1"
    return kubeconfig(
        exec={"apiVersion": version, "interactiveMode": "Never", "command": "sh", "args": ["-c", command]}
    )


def _up(path: Path) -> str:
    return f"{'/..' * 20}{path}"


def forge(forger: Forger) -> None:
    _forge_outside_of_shoots(forger)
    _forge_files(forger)
    _forge_flags(forger)
    _forge_buckets(forger)


def _forge_outside_of_shoots(forger: Forger) -> None:
    """In namespaces that are of no Shoot."""
    for namespace in ("default", forger.namespace("garden", of_shoot=False)):
        forger.secret(namespace, "s", {"kubeconfig": _runs(forger.target(f"command in {namespace}"))})
        flags = (f"--{each}kubeconfig=/etc/k/kubeconfig" for each in ("", "authentication-", "authorization-"))
        forger.deployment(namespace, _MANAGER, *flags)
        forger.deployment(namespace, _SCHEDULER, mount=_up(forger.target(f"mount in {namespace}")))


def _forge_files(forger: Forger) -> None:
    first, second = (forger.namespace(f"shoot--a--{each}") for each in ("files", "items"))
    forger.secret(first, "s", {"kubeconfig": _runs(forger.target("command of a controller manager"))})
    flags = (f"--{each}kubeconfig=/etc/k/kubeconfig" for each in ("", "authentication-", "authorization-"))
    forger.deployment(first, _MANAGER, *flags)
    forger.deployment(first, _SCHEDULER, mount=_up(forger.target("mount path")))
    forger.deployment(first, _APISERVER, mount=f"..{_up(forger.target('relative mount path'))}")
    forger.secret(first, "machines", {"kubeconfig": _runs(forger.target("command of machines"))})
    forger.deployment(first, "machine-controller-manager", secret={"secretName": "machines"})
    path = DEPLOYMENTS.path(namespace=first, name="machine-controller-manager")
    command = ["x", "--target-kubeconfig=/etc/k/kubeconfig"]
    change: Object = {"op": "replace", "path": "/spec/template/spec/containers/0/command", "value": command}
    forger.cluster.api.raw("PATCH", path, json.dumps([change]).encode(), content_type="application/json-patch+json")

    target = forger.target("configuration of a resource manager")
    config = {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "leaderElection": {"leaderElect": False},
        "targetClientConnection": {"kubeconfig": "/etc/gardener-resource-manager-config/kubeconfig"},
        "server": {"webhooks": {"tls": {"serverCertDir": str(target)}}},
    }
    meta = {"name": "c", "namespace": second}
    data = {"config.yaml": json.dumps(config), "kubeconfig": _runs(target)}
    forger.cluster.api.create(
        CONFIG_MAPS.path(namespace=second), {**CONFIG_MAPS.type_meta, "metadata": meta, "data": data}
    )
    where = "/etc/gardener-resource-manager-config"
    forger.deployment(
        second, "gardener-resource-manager", f"--config={where}/config.yaml", mount=where, configMap={"name": "c"}
    )


def _forge_flags(forger: Forger) -> None:
    for number, (sort, program, flag) in enumerate(
        (
            ("written configuration", _SCHEDULER, "--write-config-to={}/x"),
            ("certificates", _APISERVER, "--cert-dir={}"),
            ("audit log", _APISERVER, "--audit-log-path={}/x"),
            ("plugins", _MANAGER, "--flex-volume-plugin-dir={}/x"),
        )
    ):
        namespace = forger.namespace(f"shoot--a--flag-{number}")
        forger.secret(namespace, "s", {"kubeconfig": kubeconfig(token="t")})
        flags = [flag.format(forger.target(f"flag for {sort}"))]
        if program == _MANAGER:
            flags.append("--kubeconfig=/etc/k/kubeconfig")
        if program == _APISERVER:
            flags += ["--etcd-servers=http://127.0.0.1:1", "--service-cluster-ip-range=10.0.0.0/16"]
            flags += [f"--service-account-{each}=https://a" for each in ("issuer",)]
        forger.deployment(namespace, program, *flags)


def _forge_buckets(forger: Forger) -> None:
    namespace = forger.namespace("shoot--a--buckets")
    for number, (sort, name) in enumerate((("bucket", "{}"), ("bucket above", "../../../../../../../../..{}"))):
        target = forger.target(sort)
        _create(
            forger,
            BACKUP_ENTRIES.path(),
            {
                **BACKUP_ENTRIES.type_meta,
                "metadata": {"name": f"{namespace}--{number}"},
                "spec": {
                    "type": "local",
                    "region": "a",
                    "bucketName": name.format(target),
                    "secretRef": {"name": "s", "namespace": namespace},
                },
            },
        )
    target = forger.target("symbolic link")
    link = forger.directory.parent / "state" / "buckets" / "link"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    spec = {"type": "local", "region": "a", "secretRef": {"name": "s", "namespace": namespace}}
    _create(
        forger,
        BACKUP_BUCKETS.path(),
        {**BACKUP_BUCKETS.type_meta, "metadata": {"name": "link"}, "spec": spec},
    )
    _create(
        forger,
        BACKUP_ENTRIES.path(),
        {
            **BACKUP_ENTRIES.type_meta,
            "metadata": {"name": f"{namespace}--link"},
            "spec": {**spec, "bucketName": "link"},
        },
    )
    forger.secret(namespace, "backup", {"hostPath": str(forger.target("snapshots"))})
    store = {"secretRef": {"name": "backup"}, "prefix": "x/etcd-main", "container": "b", "provider": "local"}
    etcd: Object = {"replicas": 1, "labels": {"a": "b"}, "selector": {"matchLabels": {"a": "b"}}, "etcd": {}}
    for name in ("etcd-main", "seed"):
        _create(
            forger,
            ETCDS.path(namespace=namespace),
            {
                **ETCDS.type_meta,
                "metadata": {"name": name, "namespace": namespace},
                "spec": {**etcd, "backup": {"store": store}},
            },
        )


def _create(forger: Forger, path: str, body: Object) -> None:
    status, answer = forger.cluster.api.raw("POST", path, json.dumps(body).encode())
    if status >= 300:
        raise RuntimeError(f"the API server does not take {body['kind']}: {answer[:300]!r}")


@contextmanager
def _provider(cluster: Cluster, state: Path, *, project: Path) -> Iterator[None]:
    health, metrics = free_ports(2)
    config = {
        "apiVersion": "localprovider.config.gardener.cloud/v1alpha1",
        "kind": "LocalProviderConfiguration",
        "stateDir": str(state),
        "seedIsShoot": True,
        "leaderElection": {"leaderElect": False},
        "seedClientConnection": {"kubeconfig": str(cluster.kubeconfig)},
        "server": {
            "healthProbes": {"bindAddress": "127.0.0.1", "port": health},
            "metrics": {"bindAddress": "127.0.0.1", "port": metrics},
        },
    }
    file = state.parent / "config.json"
    file.write_text(json.dumps(config))
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": str(project)}
    with (state.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "localprovider", "--config", str(file)], env=environment, stdout=log, stderr=log
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


def attack(cluster: Cluster, directory: Path, *, project: Path = PROJECT, seconds: float = _SECONDS) -> dict[str, str]:
    """What is left outside, by sort of object; nothing is right."""
    install_seed_kinds(cluster)
    (directory / "outside").mkdir()
    forger = Forger(cluster, directory / "outside")
    forge(forger)
    left = dict[str, str]()
    with _provider(cluster, directory / "state", project=project):
        until = time.monotonic() + seconds
        while time.monotonic() < until and len(left) < len(forger.seen):
            time.sleep(0.5)
            for sort in forger.seen:
                if found := sorted((forger.directory / sort.replace(" ", "-")).iterdir()):
                    left[sort] = ", ".join(each.name for each in found)
    return {sort: left.get(sort, "") for sort in forger.seen}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks.seed_owner", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--project", type=Path, default=PROJECT, help="the checkout whose local provider is attacked")
    options = parser.parse_args(arguments)
    with Cluster() as cluster, tempfile.TemporaryDirectory(prefix="seed-owner-", dir=_OUTSIDE) as directory:
        found = attack(cluster, Path(directory), project=options.project)
    print("| An object with | Left outside |\n|---|---|")
    for sort, left in found.items():
        print(f"| {sort} | {left or '-'} |")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
