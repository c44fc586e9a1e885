"""The controller manager of a Shoot, without the controllers of pods and nodes where it has none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.gardenlet.components.access import cluster_role_binding
from agent.gardenlet.components.control_plane import (
    ALL_SCRAPE_TARGETS,
    CIPHER_SUITES,
    CONTROL_PLANE,
    KUBECONFIG_DIRECTORY,
    KUBECONFIG_FILE,
    REACHES_SHOOT,
    SEEN_BY_EXTENSIONS,
    Running,
    access_secret,
    access_secret_name,
    controllers_pod,
    feature_gates_argument,
    in_shoot,
    kubeconfig_volume,
    secret_volume,
)
from agent.gardenlet.components.kubernetes_versions import controllers_without, known_features, version_of
from agent.gardenlet.components.parts import TO_DNS, allowed_ports, autoscaler, deployment_unready, disruption_budget
from agent.gardenlet.components.workloads import (
    deployment,
    port,
    service,
)
from gardener import keys
from kube.objects import Object, mapping

NAME = "kube-controller-manager"
LABELS = {"app": "kubernetes", "role": "controller-manager"}
unready = deployment_unready
"""Of its Deployment."""

_MANAGED_RESOURCE = f"shoot-core-{NAME}"
_PORT = 10257
_CERTIFICATES = "/srv/kubernetes"
_SERVER_DIRECTORY = "/var/lib/kube-controller-manager-server"
_RESTARTED_IN_MAINTENANCE = {"maintenance.gardener.cloud/restart": "true"}
_ON = ("*", "bootstrapsigner", "tokencleaner")
_WITHOUT_WORKERS = (
    "attachdetach",
    "cloud-node-lifecycle",
    "nodeipam",
    "nodelifecycle",
    "persistentvolume-binder",
    "persistentvolume-expander",
    "ttl",
)
"""Controllers of nodes and volumes."""
_NODE_MASK_SIZE = 24
_POD_AUTOSCALER = (
    ("downscale-stabilization", "downscaleStabilization", "5m0s"),
    ("initial-readiness-delay", "initialReadinessDelay", "30s"),
    ("cpu-initialization-period", "cpuInitializationPeriod", "5m0s"),
    ("sync-period", "syncPeriod", "30s"),
    ("tolerance", "tolerance", "0.1"),
)
"""Flag, field of the settings, and what it is without it."""
_SIGNERS = ("kube-apiserver-client", "legacy-unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Names of Secrets of the secrets manager."""

    ca_bundle: str
    ca_client: str
    server: str
    service_account_key: str
    generic_token_kubeconfig: str
    ca_kubelet: str = ""
    """Of a Shoot with workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What it depends on.

    Attributes:
        version: of Kubernetes, such as `1.30.14`.
        settings: `spec.kubernetes.kubeControllerManager` of the Shoot.
        apis: which APIs are on or off, as `kube_apiserver.runtime_config`.
        autoscaled: whether there are VerticalPodAutoscalers.
        pod_network: of a Shoot with workers; empty: it has none.
    """

    namespace: str
    image: str
    version: str
    secrets: Secrets
    service_network: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    apis: Mapping[str, bool] = field(default_factory=dict)
    running: Running = Running.AWAKE
    replicas: int = 1
    autoscaled: bool = True
    pod_network: str = ""

    @property
    def has_workers(self) -> bool:
        return bool(self.pod_network)


def objects(values: Values) -> list[Object]:
    return [
        _service(values),
        access_secret(NAME, values.namespace),
        _deployment(values),
        disruption_budget(NAME, values.namespace, labels=LABELS),
        *([_autoscaler(values)] if values.autoscaled else []),
        *rights(values.namespace),
    ]


def rights(namespace: str) -> list[Object]:
    """In the Shoot."""
    binding = cluster_role_binding(
        f"gardener.cloud:target:{NAME}", NAME, namespace="kube-system", role=f"system:{NAME}"
    )
    return in_shoot(_MANAGED_RESOURCE, [binding], namespace=namespace, keep_objects=True)


def _service(values: Values) -> Object:
    return service(
        NAME,
        namespace=values.namespace,
        ports=[port("metrics", _PORT)],
        selects=LABELS,
        labels=LABELS,
        annotations={ALL_SCRAPE_TARGETS: allowed_ports(_PORT)},
        clusterIP="None",
    )


def _autoscaler(values: Values) -> Object:
    policy = {
        "containerName": NAME,
        "controlledValues": "RequestsOnly",
        "minAllowed": {"memory": "50Mi"},
        "maxAllowed": {"cpu": "4", "memory": "10G"},
    }
    return autoscaler(f"{NAME}-vpa", values.namespace, deployment=NAME, policy=policy)


# --- its pods


def _deployment(values: Values) -> Object:
    return deployment(
        NAME,
        namespace=values.namespace,
        labels={**LABELS, **CONTROL_PLANE, **SEEN_BY_EXTENSIONS, keys.HIGH_AVAILABILITY_TYPE: "controller"},
        selects=LABELS,
        pod_labels={**CONTROL_PLANE, **_RESTARTED_IN_MAINTENANCE, TO_DNS: keys.ALLOWED, **REACHES_SHOOT},
        pod=_pod(values),
        replicas=values.running.replicas(values.replicas),
        revisionHistoryLimit=1,
    )


def _pod(values: Values) -> Object:
    secrets = values.secrets
    volumes = {
        "ca": (f"{_CERTIFICATES}/ca", secret_volume(secrets.ca_bundle)),
        "ca-client": (f"{_CERTIFICATES}/ca-client", secret_volume(secrets.ca_client, is_private=True)),
        "service-account-key": (
            f"{_CERTIFICATES}/service-account-key",
            secret_volume(secrets.service_account_key, is_private=True),
        ),
        "server": (_SERVER_DIRECTORY, secret_volume(secrets.server, is_private=True)),
    }
    if values.has_workers:
        volumes["ca-kubelet"] = f"{_CERTIFICATES}/ca-kubelet", secret_volume(secrets.ca_kubelet, is_private=True)
    kubeconfig = kubeconfig_volume(secrets.generic_token_kubeconfig, access_secret_name(NAME))
    volumes["kubeconfig"] = KUBECONFIG_DIRECTORY, kubeconfig
    return controllers_pod(
        NAME, values.image, cpu="100m", memory="128Mi", port=_PORT, arguments=arguments(values), volumes=volumes
    )


def arguments(values: Values) -> list[str]:
    return [
        *(f"--{flag}={KUBECONFIG_FILE}" for flag in ("authentication-kubeconfig", "authorization-kubeconfig")),
        f"--kubeconfig={KUBECONFIG_FILE}",
        *(_for_workers(values) if values.has_workers else ()),
        f"--cluster-name={values.namespace}",
        *_signing(),
        "--concurrent-endpoint-syncs=15",
        "--concurrent-gc-syncs=30",
        "--concurrent-service-endpoint-syncs=15",
        f"--controllers={','.join(_controllers(values))}",
        "--concurrent-namespace-syncs=30",
        "--concurrent-resource-quota-syncs=15",
        "--concurrent-serviceaccount-token-syncs=15",
        *feature_gates_argument(
            known_features(mapping(values.settings.get("featureGates")), version_of(values.version))
        ),
        f"--root-ca-file={_CERTIFICATES}/ca/bundle.crt",
        f"--service-account-private-key-file={_CERTIFICATES}/service-account-key/id_rsa",
        f"--secure-port={_PORT}",
        f"--service-cluster-ip-range={values.service_network}",
        "--profiling=false",
        f"--tls-cert-file={_SERVER_DIRECTORY}/tls.crt",
        f"--tls-private-key-file={_SERVER_DIRECTORY}/tls.key",
        f"--tls-cipher-suites={CIPHER_SUITES}",
        "--use-service-account-credentials=true",
        "--v=2",
    ]


def _for_workers(values: Values) -> Iterator[str]:
    """Of pods and nodes: their networks, how many objects are worked on at once, and when what is gone is given up."""
    yield f"--node-cidr-mask-size={values.settings.get('nodeCIDRMaskSize') or _NODE_MASK_SIZE}"
    yield "--allocate-node-cidrs=true"
    yield "--attach-detach-reconcile-sync-period=1m0s"
    yield f"--cluster-cidr={values.pod_network}"
    for signer, authority in (("kubelet-client", "ca-client"), ("kubelet-serving", "ca-kubelet")):
        yield f"--cluster-signing-{signer}-cert-file={_CERTIFICATES}/{authority}/ca.crt"
        yield f"--cluster-signing-{signer}-key-file={_CERTIFICATES}/{authority}/ca.key"
    autoscaler = mapping(values.settings.get("horizontalPodAutoscaler"))
    for flag, name, usual in _POD_AUTOSCALER:
        yield f"--horizontal-pod-autoscaler-{flag}={autoscaler.get(name) or usual}"
    yield "--leader-elect=true"
    yield f"--node-monitor-grace-period={values.settings.get('nodeMonitorGracePeriod') or '40s'}"
    yield "--concurrent-deployment-syncs=50"
    yield "--concurrent-replicaset-syncs=50"
    yield "--concurrent-statefulset-syncs=15"


def _signing() -> Iterator[str]:
    """By one authority, but for kubelets."""
    for signer in _SIGNERS:
        yield f"--cluster-signing-{signer}-cert-file={_CERTIFICATES}/ca-client/ca.crt"
        yield f"--cluster-signing-{signer}-key-file={_CERTIFICATES}/ca-client/ca.key"
    yield "--cluster-signing-duration=720h0m0s"


def _controllers(values: Values) -> list[str]:
    always = () if values.has_workers else _WITHOUT_WORKERS
    off = {*always, *controllers_without(values.apis, version_of(values.version))}
    return [*(name for name in _ON if name not in off), *(f"-{name}" for name in sorted(off))]
