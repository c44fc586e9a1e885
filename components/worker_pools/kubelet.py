"""The kubelet on the nodes of a pool: its command line, and its configuration."""

from collections.abc import Iterator

from components.kubernetes_versions import known_features, version_of
from components.manifest import manifest
from components.worker_pools.pools import VERSION, Pool
from kube.objects import Object, mapping

BINARY = "/opt/bin/kubelet"
DIRECTORY = "/var/lib/kubelet"
CONFIG, AUTHORITY = f"{DIRECTORY}/config/kubelet", f"{DIRECTORY}/ca.crt"
REGISTERED = f"{DIRECTORY}/kubeconfig-real"
"""Exists once the node has joined."""
_FIELDS = {
    "memory.available": "memoryAvailable",
    "imagefs.available": "imageFSAvailable",
    "imagefs.inodesFree": "imageFSInodesFree",
    "nodefs.available": "nodeFSAvailable",
    "nodefs.inodesFree": "nodeFSInodesFree",
}
"""Signals in a kubelet's configuration, and their names in a Shoot."""
_THRESHOLDS = ("evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim")
_RESERVED = ("kubeReserved", "systemReserved")
_RESERVED_NAMES = {"ephemeralStorage": "ephemeral-storage"}


def command(pool: Pool) -> str:
    """Command of a systemd unit."""
    return " \\\n    ".join([BINARY, *_flags(pool)]) + " $KUBELET_EXTRA_ARGS"


def _flags(pool: Pool) -> Iterator[str]:
    yield f"--bootstrap-kubeconfig={DIRECTORY}/kubeconfig-bootstrap"
    yield f"--config={CONFIG}"
    yield f"--kubeconfig={REGISTERED}"
    for name, value in {VERSION: pool.version, **dict(sorted(pool.labels.items()))}.items():
        yield f"--node-labels={name}={value}"
    yield "--container-runtime-endpoint=unix:///run/containerd/containerd.sock"
    yield "--runtime-cgroups=/system.slice/containerd.service"
    yield "--v=2"


def configuration(pool: Pool, *, dns: str) -> Object:
    """Args: dns: address of the cluster's DNS."""
    requested = {name: value for name, value in pool.kubelet.items() if value is not None}
    given = {name: value for name, value in requested.items() if name not in {*_THRESHOLDS, *_RESERVED, "featureGates"}}
    (usual,) = manifest(__file__, "kubelet.yaml", dns=dns)
    config = usual | given
    for name in _THRESHOLDS:
        own = mapping(requested.get(name))
        config[name] = {signal: own.get(_FIELDS[signal], value) for signal, value in usual[name].items()}
    for name in _RESERVED:
        if reserved := mapping(requested.get(name)):
            config[name] = {_RESERVED_NAMES.get(each, each): str(amount) for each, amount in reserved.items()}
    if features := known_features(mapping(requested.get("featureGates")), version_of(pool.version)):
        config["featureGates"] = features
    return config
