"""The kubelet on the nodes of a pool: its command line, and its configuration."""

from collections.abc import Iterator, Mapping
from typing import Any

from components.kubernetes_versions import known_features, version_of
from components.worker_pools.pools import VERSION, Pool
from kube.objects import Object, mapping

BINARY = "/opt/bin/kubelet"
DIRECTORY = "/var/lib/kubelet"
CONFIG, AUTHORITY = f"{DIRECTORY}/config/kubelet", f"{DIRECTORY}/ca.crt"
REGISTERED = f"{DIRECTORY}/kubeconfig-real"
"""Exists once the node has joined."""
_DEFAULTS: Mapping[str, Any] = {
    "cgroupDriver": "systemd",
    "cgroupsPerQOS": True,
    "clusterDomain": "cluster.local",
    "containerLogMaxSize": "100Mi",
    "cpuManagerReconcilePeriod": "10s",
    "enableControllerAttachDetach": True,
    "enableDebuggingHandlers": True,
    "enableServer": True,
    "enforceNodeAllocatable": ["pods"],
    "eventBurst": 50,
    "eventRecordQPS": 50,
    "evictionMaxPodGracePeriod": 90,
    "evictionPressureTransitionPeriod": "4m0s",
    "failSwapOn": True,
    "fileCheckFrequency": "20s",
    "httpCheckFrequency": "20s",
    "imageMinimumGCAge": "2m0s",
    "kubeAPIBurst": 50,
    "kubeAPIQPS": 50,
    "maxOpenFiles": 1000000,
    "maxPods": 110,
    "nodeStatusUpdateFrequency": "10s",
    "registryBurst": 10,
    "registryPullQPS": 5,
    "rotateCertificates": True,
    "serializeImagePulls": True,
    "serverTLSBootstrap": True,
    "streamingConnectionIdleTimeout": "5m0s",
    "syncFrequency": "1m0s",
    "volumePluginDir": f"{DIRECTORY}/volumeplugins",
    "volumeStatsAggPeriod": "1m0s",
}
_FIRST_TAINT = {"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}
"""Taint of a new node until critical components run there."""
_SIGNALS = {
    "memoryAvailable": "memory.available",
    "imageFSAvailable": "imagefs.available",
    "imageFSInodesFree": "imagefs.inodesFree",
    "nodeFSAvailable": "nodefs.available",
    "nodeFSInodesFree": "nodefs.inodesFree",
}
"""Names of signals in a Shoot, and in a kubelet's configuration."""
_THRESHOLDS: Mapping[str, Mapping[str, str]] = {
    "evictionHard": dict(zip(_SIGNALS, ("100Mi", "5%", "5%", "5%", "5%"), strict=True)),
    "evictionSoft": dict(zip(_SIGNALS, ("200Mi", "10%", "10%", "10%", "10%"), strict=True)),
    "evictionSoftGracePeriod": dict.fromkeys(_SIGNALS, "1m30s"),
    "evictionMinimumReclaim": dict.fromkeys(_SIGNALS, "0Mi"),
}
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
    config: Object = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True, "cacheTTL": "2m0s"},
            "x509": {"clientCAFile": AUTHORITY},
        },
        "authorization": {
            "mode": "Webhook",
            "webhook": {"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"},
        },
        "clusterDNS": [dns],
        "registerWithTaints": [_FIRST_TAINT],
        **_DEFAULTS,
        **given,
    }
    for name, usual in _THRESHOLDS.items():
        config[name] = {_SIGNALS[each]: mapping(requested.get(name)).get(each, value) for each, value in usual.items()}
    for name in _RESERVED:
        if reserved := mapping(requested.get(name)):
            config[name] = {_RESERVED_NAMES.get(each, each): str(amount) for each, amount in reserved.items()}
    if features := known_features(mapping(requested.get("featureGates")), version_of(pool.version)):
        config["featureGates"] = features
    return config
