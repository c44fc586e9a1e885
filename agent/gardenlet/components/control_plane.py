"""What components of a Shoot's control plane have in common. They are in the namespace of the Shoot, in the seed.

Whether they run follows from the Shoot and from the step of its flow, never from what is there: a flow that was ended
half-way ends, when it is repeated, where the first one would have.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from agent.gardenlet.components.parts import made
from agent.gardenlet.components.workloads import container, container_ports
from gardener import keys
from gardener.managed_resource.bundle import managed_resource, managed_resource_of_parts
from kube.objects import Object, text
from kube.paths import at
from kube.resources import SECRETS

CONTROL_PLANE = {keys.ROLE: "controlplane"}
"""A label of objects and pods."""
SEEN_BY_EXTENSIONS = {"provider.extensions.gardener.cloud/mutated-by-controlplane-webhook": "true"}
"""A label of what webhooks of extensions change."""
ALL_SCRAPE_TARGETS = f"{keys.NETWORKING_PREFIX}from-all-scrape-targets-allowed-ports"
"""An annotation of Services: which ports the Prometheus of the Shoot may reach."""
REACHES_SHOOT = {f"{keys.TO_PREFIX}kube-apiserver-tcp-443": keys.ALLOWED}
"""Labels of pods that talk to the API server of the Shoot."""
FROM_GARDEN = '{"matchLabels":{"kubernetes.io/metadata.name":"garden"}}'
"""A selector of namespaces, in annotations of Services."""
PRIORITY = "gardener-system-{}"
NOT_ROOT = {"runAsUser": 65532, "runAsGroup": 65532, "runAsNonRoot": True, "fsGroup": 65532}
"""The security context of pods."""
READ_BY_ALL, READ_BY_GROUP = 0o644, 0o640
"""Of files in volumes."""
_CIPHER_SUITES = (
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
)
CIPHER_SUITES = ",".join(_CIPHER_SUITES)
"""What servers and clients of a control plane may agree on."""
KUBECONFIG_DIRECTORY = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
KUBECONFIG_FILE = f"{KUBECONFIG_DIRECTORY}/kubeconfig"
CLASS_SHOOT = "shoot"
"""Of Secrets whose tokens are of the Shoot."""
_ORIGIN_GARDENER = {"origin": "gardener"}
_ACCESS_PREFIX = "shoot-access-"


class Running(Enum):
    """What is to run of a Shoot."""

    AWAKE = auto()
    ASLEEP = auto()
    """Nothing; data and keys stay."""
    LEAVING = auto()
    """It is being deleted, or moves to another seed: what is needed for that runs until it is removed."""

    def replicas(self, wanted: int) -> int:
        return 0 if self is Running.ASLEEP else wanted


def failure_tolerance(shoot: Object) -> str:
    """What its control plane survives: the failure of a `node`, of a `zone`; empty: neither."""
    return text(at(shoot, "spec", "controlPlane", "highAvailability", "failureTolerance", "type"))


def least_api_servers(shoot: Object) -> int:
    """While it is awake."""
    return 3 if failure_tolerance(shoot) else 2


def controller_managers(shoot: Object) -> int:
    """One leads, another takes over."""
    return 2 if failure_tolerance(shoot) else 1


def etcd_members(shoot: Object) -> int:
    return 3 if failure_tolerance(shoot) else 1


def in_shoot(
    name: str,
    objects: Iterable[Object],
    *,
    namespace: str,
    keep_objects: bool = False,
    labels: Mapping[str, str] | None = None,
) -> list[Object]:
    """A ManagedResource that the resource manager of the Shoot applies, with its Secret.

    Args:
        name: of the ManagedResource.
        objects: of the Shoot. The clean-up before its deletion spares them.
        namespace: of the Shoot, in the seed.
        keep_objects: whether they stay when the ManagedResource is deleted.
        labels: of the ManagedResource, further ones.
    """
    return managed_resource(
        name,
        namespace,
        objects,
        labels={**_ORIGIN_GARDENER, **(labels or {})},
        inject_labels={keys.SHOOT_NO_CLEANUP: "true"},
        keep_objects=keep_objects,
    )


def in_shoot_by_parts(name: str, parts: Mapping[str, Iterable[Object]], *, namespace: str) -> list[Object]:
    """As `in_shoot`, with a Secret for each part."""
    return managed_resource_of_parts(
        name, namespace, parts, labels=_ORIGIN_GARDENER, inject_labels={keys.SHOOT_NO_CLEANUP: "true"}
    )


def access_secret_name(component: str) -> str:
    return f"{_ACCESS_PREFIX}{component}"


def access_secret(
    account: str,
    namespace: str,
    *,
    name: str = "",
    lifetime: str = "",
    kubeconfig: str = "",
) -> Object:
    """A Secret that asks for a token of a ServiceAccount `kube-system` in the Shoot.

    Args:
        account: name of the ServiceAccount.
        namespace: of the Secret.
        name: of the Secret; empty: after the ServiceAccount.
        lifetime: of the token; empty: the requestor's default.
        kubeconfig: base64; the token is put into it, instead of a key of its own.
    """
    notes = {keys.SERVICE_ACCOUNT_NAME: account, keys.SERVICE_ACCOUNT_NAMESPACE: "kube-system"}
    if lifetime:
        notes[keys.TOKEN_EXPIRATION_DURATION] = lifetime
    return made(
        SECRETS,
        name or access_secret_name(account),
        namespace=namespace,
        labels={keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR, keys.CLASS: CLASS_SHOOT},
        annotations=notes,
        type="Opaque",
        **({"data": {"kubeconfig": kubeconfig}} if kubeconfig else {}),
    )


def kubeconfig_volume(kubeconfig_secret: str, access: str) -> Object:
    """A kubeconfig and its token. Args: kubeconfig_secret, access: names of their Secrets."""
    sources = [
        {"secret": {"name": secret, "items": [{"key": file, "path": file}], "optional": False}}
        for secret, file in ((kubeconfig_secret, "kubeconfig"), (access, "token"))
    ]
    return {"projected": {"sources": sources, "defaultMode": READ_BY_ALL}}


def secret_volume(name: str, *, is_private: bool = False) -> Object:
    return {"secret": {"secretName": name, "defaultMode": READ_BY_GROUP if is_private else READ_BY_ALL}}


def config_map_volume(name: str) -> Object:
    return {"configMap": {"name": name, "defaultMode": READ_BY_ALL}}


def feature_gates_argument(features: Mapping[str, bool]) -> list[str]:
    """None: nothing is set."""
    return [f"--feature-gates={_switches(features)}"] if features else []


def runtime_config_argument(apis: Mapping[str, bool]) -> list[str]:
    return [f"--runtime-config={_switches(apis)}"] if apis else []


def _switches(values: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(values.items()))


def controllers_pod(
    name: str,
    image: str,
    *,
    cpu: str,
    memory: str,
    port: int,
    arguments: Sequence[str],
    volumes: Mapping[str, tuple[str, Object]],
) -> Object:
    """Of a program of Kubernetes that works for the API server, with `port` for metrics and probes.

    `volumes` are where each is mounted, and what it is; the last one is read-only, the others are by their kind.
    """
    mounts: list[Object] = [{"name": each, "mountPath": path} for each, (path, _) in volumes.items()]
    mounts[-1]["readOnly"] = True
    probe = {
        "httpGet": {"path": "/healthz", "port": port, "scheme": "HTTPS"},
        "initialDelaySeconds": 15,
        "timeoutSeconds": 15,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 2,
    }
    its_container = container(
        name,
        image,
        cpu=cpu,
        memory=memory,
        command=[f"/usr/local/bin/{name}", *arguments],
        ports=container_ports(metrics=port),
        livenessProbe=probe,
        volumeMounts=mounts,
    )
    return {
        "automountServiceAccountToken": False,
        "priorityClassName": PRIORITY.format(300),
        "securityContext": dict(NOT_ROOT),
        "containers": [its_container],
        "volumes": [{"name": each, **source} for each, (_, source) in volumes.items()],
    }
