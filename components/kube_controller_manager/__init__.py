"""The controller manager of a Shoot; without workers, it lacks the controllers of pods and nodes."""

from collections.abc import Iterator

from components import kube_apiserver
from components.access import cluster_role_binding
from components.component import OF_DEPLOYMENT, Component, always
from components.control_plane import (
    CIPHER_SUITES,
    KUBECONFIG_FILE,
    controller_managers,
    feature_gates_argument,
    in_shoot,
)
from components.inputs import Inputs
from components.kubernetes_versions import controllers_without, known_features, version_of
from components.manifest import manifest, of_kind, without
from components.secrets import tables
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from kube.objects import Object, mapping
from kube.resources import DEPLOYMENTS

NAME = "kube-controller-manager"
_SETTINGS = "kubeControllerManager"
_CERTIFICATES = "/srv/kubernetes"
_SERVER_DIRECTORY = "/var/lib/kube-controller-manager-server"
_OF_KUBELETS = "ca-kubelet"
"""Volume for workers only."""
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
"""Flag, field of the settings, and default."""
_SIGNERS = ("kube-apiserver-client", "legacy-unknown")


def _objects(inputs: Inputs) -> list[Object]:
    found = _workload(inputs)
    binding = cluster_role_binding(
        f"gardener.cloud:target:{NAME}", NAME, namespace="kube-system", role=f"system:{NAME}"
    )
    return [
        *(found if inputs.autoscaled else without(found, VERTICAL_POD_AUTOSCALERS.kind)),
        *in_shoot(f"shoot-core-{NAME}", [binding], namespace=inputs.namespace, keep_objects=True),
    ]


def _workload(inputs: Inputs) -> list[Object]:
    secrets = inputs.secrets
    found = manifest(
        __file__,
        image=inputs.image_of_kubernetes(NAME),
        namespace=inputs.namespace,
        replicas=inputs.running.replicas(controller_managers(inputs.shoot)),
        command=[f"/usr/local/bin/{NAME}", *arguments(inputs)],
        ca=secrets.bundle(tables.CA.name).name,
        ca_client=secrets.current(tables.CA_CLIENT.name).name,
        ca_kubelet=secrets.current(tables.CA_KUBELET.name).name if inputs.has_workers else "",
        certificate=secrets.current(f"{NAME}-server").name,
        signing_key=secrets.current(tables.SERVICE_ACCOUNT_KEY.name).name,
        kubeconfig=secrets.current(tables.TOKEN_KUBECONFIG).name,
    )
    if not inputs.has_workers:
        pod = of_kind(found, DEPLOYMENTS.kind)["spec"]["template"]["spec"]
        for holder, field in ((pod, "volumes"), (pod["containers"][0], "volumeMounts")):
            holder[field] = [each for each in holder[field] if each["name"] != _OF_KUBELETS]
    return found


def arguments(inputs: Inputs) -> list[str]:
    return [
        *(f"--{flag}={KUBECONFIG_FILE}" for flag in ("authentication-kubeconfig", "authorization-kubeconfig")),
        f"--kubeconfig={KUBECONFIG_FILE}",
        *(_for_workers(inputs) if inputs.has_workers else ()),
        f"--cluster-name={inputs.namespace}",
        *_signing(),
        "--concurrent-endpoint-syncs=15",
        "--concurrent-gc-syncs=30",
        "--concurrent-service-endpoint-syncs=15",
        f"--controllers={','.join(_controllers(inputs))}",
        "--concurrent-namespace-syncs=30",
        "--concurrent-resource-quota-syncs=15",
        "--concurrent-serviceaccount-token-syncs=15",
        *feature_gates_argument(
            known_features(mapping(inputs.settings(_SETTINGS).get("featureGates")), version_of(inputs.version))
        ),
        f"--root-ca-file={_CERTIFICATES}/ca/bundle.crt",
        f"--service-account-private-key-file={_CERTIFICATES}/service-account-key/id_rsa",
        "--secure-port=10257",
        f"--service-cluster-ip-range={inputs.service_network}",
        "--profiling=false",
        f"--tls-cert-file={_SERVER_DIRECTORY}/tls.crt",
        f"--tls-private-key-file={_SERVER_DIRECTORY}/tls.key",
        f"--tls-cipher-suites={CIPHER_SUITES}",
        "--use-service-account-credentials=true",
        "--v=2",
    ]


def _for_workers(inputs: Inputs) -> Iterator[str]:
    """Arguments for pods and nodes: networks, concurrency, and grace periods."""
    yield f"--node-cidr-mask-size={inputs.settings(_SETTINGS).get('nodeCIDRMaskSize') or _NODE_MASK_SIZE}"
    yield "--allocate-node-cidrs=true"
    yield "--attach-detach-reconcile-sync-period=1m0s"
    yield f"--cluster-cidr={inputs.pod_network}"
    for signer, authority in (("kubelet-client", "ca-client"), ("kubelet-serving", "ca-kubelet")):
        yield f"--cluster-signing-{signer}-cert-file={_CERTIFICATES}/{authority}/ca.crt"
        yield f"--cluster-signing-{signer}-key-file={_CERTIFICATES}/{authority}/ca.key"
    autoscaler = mapping(inputs.settings(_SETTINGS).get("horizontalPodAutoscaler"))
    for flag, name, usual in _POD_AUTOSCALER:
        yield f"--horizontal-pod-autoscaler-{flag}={autoscaler.get(name) or usual}"
    yield "--leader-elect=true"
    yield f"--node-monitor-grace-period={inputs.settings(_SETTINGS).get('nodeMonitorGracePeriod') or '40s'}"
    yield "--concurrent-deployment-syncs=50"
    yield "--concurrent-replicaset-syncs=50"
    yield "--concurrent-statefulset-syncs=15"


def _signing() -> Iterator[str]:
    """Arguments of the signers other than those of kubelets: all use one authority."""
    for signer in _SIGNERS:
        yield f"--cluster-signing-{signer}-cert-file={_CERTIFICATES}/ca-client/ca.crt"
        yield f"--cluster-signing-{signer}-key-file={_CERTIFICATES}/ca-client/ca.key"
    yield "--cluster-signing-duration=720h0m0s"


def _controllers(inputs: Inputs) -> list[str]:
    version = version_of(inputs.version)
    given = inputs.settings("kubeAPIServer").get("runtimeConfig")
    apis = kube_apiserver.apis(given, version, has_workers=inputs.has_workers)
    always = () if inputs.has_workers else _WITHOUT_WORKERS
    off = {*always, *controllers_without(apis, version)}
    return [*(name for name in _ON if name not in off), *(f"-{name}" for name in sorted(off))]


COMPONENT = Component(
    name=NAME,
    title="Kubernetes controller manager",
    objects=_objects,
    secrets=lambda plane: [plane.component_server(NAME)],
    readiness=OF_DEPLOYMENT,
    awaited=f"{NAME} reports readiness",
    # It starts with a token, which the resource manager requests.
    awaited_after=["resource-manager-ready"],
    task="controller-manager",
    after=["secrets", "api-server-ready"],
    is_of_workers=False,
    is_left_asleep=False,
    is_put_to_sleep_later=True,
    is_required=always,
)
