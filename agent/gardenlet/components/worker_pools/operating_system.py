"""OperatingSystemConfigs: two for each pool.

provision  what a machine starts with: it fetches the node agent, and nothing more
reconcile  what the node agent then keeps on it: the kubelet, its configuration, settings of the system
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from agent.gardenlet.components.parts import made
from agent.gardenlet.components.worker_pools.pools import NODE_AGENT, POOL, VERSION, Pool
from gardener.api.extensions import OPERATING_SYSTEM_CONFIGS
from kube.objects import Object
from kube.yaml import Dumper

PROVISION, RECONCILE = "provision", "reconcile"
_SUFFIXES = {PROVISION: "init", RECONCILE: "original"}
_DIRECTORY = f"/var/lib/{NODE_AGENT}"
_CONFIG, _INIT = f"{_DIRECTORY}/config.yaml", f"{_DIRECTORY}/init.sh"
_KUBELET_CONFIG, _KUBELET_CA = "/var/lib/kubelet/config/kubelet", "/var/lib/kubelet/ca.crt"
_SYSCTL = "/etc/sysctl.d/99-k8s-general.conf"
_ALL_READ, _OWNER_READS, _GROUP_READS, _ALL_RUN = 0o644, 0o600, 0o640, 0o755
_TOKEN = "<<BOOTSTRAP_TOKEN>>"
_SETTINGS = {
    "fs.inotify.max_user_watches": "524288",
    "net.ipv4.conf.all.forwarding": "1",
    "net.ipv6.conf.all.forwarding": "1",
    "vm.max_map_count": "135217728",
    "vm.overcommit_memory": "1",
}
_KUBELET_DEFAULTS = {
    "cgroupDriver": "systemd",
    "cgroupsPerQOS": True,
    "clusterDomain": "cluster.local",
    "enableServer": True,
    "rotateCertificates": True,
    "serverTLSBootstrap": True,
    "failSwapOn": True,
    "maxPods": 110,
    "volumePluginDir": "/var/lib/kubelet/volumeplugins",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes:
    type: of the extension for its machine image.
    server: URL of the API server.
    ca_bundle: by which that is verified.
    kubelet_ca: by which certificates of kubelets are verified.
    dns: address of the cluster's DNS.
    """

    namespace: str
    pool: Pool
    type: str
    server: str
    ca_bundle: bytes
    kubelet_ca: bytes
    dns: str


def name_of(pool: Pool, purpose: str) -> str:
    return f"{pool.key}-{pool.image_name}-{_SUFFIXES[purpose]}"


def objects(values: Values) -> list[Object]:
    """First the one that a machine starts with."""
    return [_config(values, PROVISION), _config(values, RECONCILE)]


def _config(values: Values, purpose: str) -> Object:
    parts = {
        PROVISION: (_first_units, _first_files),
        RECONCILE: (_units, _files),
    }
    units, files = parts[purpose]
    spec: Object = {
        "type": values.type,
        "purpose": purpose,
        "criConfig": {"name": values.pool.runtime},
        "units": list(units(values)),
        "files": list(files(values)),
    }
    if provider_config := values.pool.image.get("providerConfig"):
        spec["providerConfig"] = provider_config
    return made(
        OPERATING_SYSTEM_CONFIGS,
        name_of(values.pool, purpose),
        namespace=values.namespace,
        labels={POOL: values.pool.name, "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook": "true"},
        spec=spec,
    )


# --- at the start


def _first_units(_: Values) -> Iterator[Object]:
    yield _unit("gardener-node-init.service", _INIT, "Fetches the node agent", kind="oneshot", paths=[_INIT])


def _first_files(values: Values) -> Iterator[Object]:
    token = {"content": {"inline": {"encoding": "", "data": _TOKEN}, "transmitUnencoded": True}}
    yield {"path": f"{_DIRECTORY}/credentials/bootstrap-token", "permissions": _GROUP_READS, **token}
    script = f"#!/bin/sh\nexec /opt/bin/{NODE_AGENT} bootstrap --config={_CONFIG}\n"
    yield _file(_INIT, script.encode(), _ALL_RUN)
    yield _file(_CONFIG, _agent_config(values, bootstraps=True), _OWNER_READS)


# --- from then on


def _units(values: Values) -> Iterator[Object]:
    yield {"name": "systemd-sysctl.service", "command": "restart", "enable": True, "filePaths": [_SYSCTL]}
    kubelet = " ".join(["/opt/bin/kubelet", *_kubelet_flags(values.pool)])
    yield _unit("kubelet.service", kubelet, "Kubelet", paths=[_KUBELET_CA, _KUBELET_CONFIG])
    agent = f"/opt/bin/{NODE_AGENT} --config={_CONFIG}"
    yield _unit(f"{NODE_AGENT}.service", agent, "Keeps this node as it is configured", paths=[_CONFIG])


def _files(values: Values) -> Iterator[Object]:
    yield _file(_SYSCTL, "".join(f"{name} = {value}\n" for name, value in _SETTINGS.items()).encode(), _ALL_READ)
    yield _file(_KUBELET_CA, values.kubelet_ca, _ALL_READ)
    yield _file(_KUBELET_CONFIG, _kubelet_config(values), _ALL_READ)
    yield _file(_CONFIG, _agent_config(values, bootstraps=False), _OWNER_READS)


def _kubelet_flags(pool: Pool) -> Iterator[str]:
    yield f"--config={_KUBELET_CONFIG}"
    yield "--bootstrap-kubeconfig=/var/lib/kubelet/kubeconfig-bootstrap"
    yield "--kubeconfig=/var/lib/kubelet/kubeconfig-real"
    labels = {VERSION: pool.version, **pool.labels}
    yield f"--node-labels={','.join(f'{name}={value}' for name, value in labels.items())}"
    yield "--container-runtime-endpoint=unix:///run/containerd/containerd.sock"
    yield "--runtime-cgroups=/system.slice/containerd.service"
    yield "--v=2"


def _kubelet_config(values: Values) -> bytes:
    asked = values.pool.kubelet
    authentication = {
        "anonymous": {"enabled": False},
        "webhook": {"enabled": True, "cacheTTL": "2m0s"},
        "x509": {"clientCAFile": _KUBELET_CA},
    }
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        **_KUBELET_DEFAULTS,
        "authentication": authentication,
        "authorization": {"mode": "Webhook"},
        "clusterDNS": [values.dns],
        **{name: value for name, value in asked.items() if value is not None},
    }
    return _yaml(config)


def _agent_config(values: Values, *, bootstraps: bool) -> bytes:
    config: Object = {
        "apiVersion": "nodeagent.config.gardener.cloud/v1alpha1",
        "kind": "NodeAgentConfiguration",
        "apiServer": {"server": values.server, "caBundle": base64.b64encode(values.ca_bundle).decode()},
        "controllers": {
            "operatingSystemConfig": {"secretName": values.pool.key, "kubernetesVersion": values.pool.version},
            "token": {"syncConfigs": [{"secretName": NODE_AGENT, "path": f"{_DIRECTORY}/credentials/token"}]},
        },
    }
    return _yaml(config | ({"bootstrap": {}} if bootstraps else {}))


# --- parts


def _unit(name: str, command: str, description: str, *, paths: list[str], kind: str = "simple") -> Object:
    restarts = "on-failure" if kind == "oneshot" else "always"
    lines = (
        "[Unit]",
        f"Description={description}",
        "After=network-online.target",
        "[Service]",
        f"Type={kind}",
        f"Restart={restarts}",
        "RestartSec=5",
        f"ExecStart={command}",
        "[Install]",
        "WantedBy=multi-user.target",
    )
    return {"name": name, "command": "start", "enable": True, "content": "\n".join(lines), "filePaths": paths}


def _file(path: str, content: bytes, permissions: int) -> Object:
    inline = {"encoding": "b64", "data": base64.b64encode(content).decode()}
    return {"path": path, "permissions": permissions, "content": {"inline": inline}}


def _yaml(content: Object) -> bytes:
    written: str = yaml.dump(content, Dumper=Dumper, sort_keys=True, width=1 << 20)
    return written.encode()
