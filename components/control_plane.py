"""Common parts of the components of a Shoot's control plane, which are in the namespace of the Shoot, in the seed.

Their desired state follows from the Shoot and the step of its flow, never from live objects: a flow that is repeated
after an interruption ends in the same state as the first one.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Any

from components.parts import made
from gardener import keys
from gardener.managed_resource.bundle import managed_resource, managed_resource_of_parts
from kube.objects import Object, text
from kube.paths import at
from kube.resources import SECRETS

CONTROL_PLANE = {keys.ROLE: "controlplane"}
"""Labels of objects and pods."""
SEEN_BY_EXTENSIONS = {"provider.extensions.gardener.cloud/mutated-by-controlplane-webhook": "true"}
"""Label of objects that webhooks of extensions mutate."""
ALL_SCRAPE_TARGETS = f"{keys.NETWORKING_PREFIX}from-all-scrape-targets-allowed-ports"
"""Annotation of Services: ports that the Prometheus of the Shoot may reach."""
REACHES_SHOOT = {f"{keys.TO_PREFIX}kube-apiserver-tcp-443": keys.ALLOWED}
"""Labels of pods that connect to the API server of the Shoot."""
FROM_GARDEN = '{"matchLabels":{"kubernetes.io/metadata.name":"garden"}}'
"""Selector of namespaces, in annotations of Services."""
PRIORITY = "gardener-system-{}"
NOT_ROOT = {"runAsUser": 65532, "runAsGroup": 65532, "runAsNonRoot": True, "fsGroup": 65532}
"""Security context of pods."""
READ_BY_ALL, READ_BY_GROUP = 0o644, 0o640
"""Modes of files in volumes."""
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
"""Allowed cipher suites of servers and clients of a control plane."""
KUBECONFIG_DIRECTORY = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
KUBECONFIG_FILE = f"{KUBECONFIG_DIRECTORY}/kubeconfig"
CLASS_SHOOT = "shoot"
"""Class of Secrets with tokens for the Shoot."""
_ORIGIN_GARDENER = {"origin": "gardener"}
_ACCESS_PREFIX = "shoot-access-"


class Running(Enum):
    """Desired running state of a Shoot."""

    AWAKE = auto()
    ASLEEP = auto()
    """Scaled to zero; data and keys stay."""
    LEAVING = auto()
    """Being deleted, or moving to another seed: required components run until they are removed."""

    def replicas(self, wanted: int) -> int:
        return 0 if self is Running.ASLEEP else wanted


def failure_tolerance(shoot: Object) -> str:
    """Failure that the control plane survives: of a `node`, or of a `zone`; empty if neither."""
    return text(at(shoot, "spec", "controlPlane", "highAvailability", "failureTolerance", "type"))


def least_api_servers(shoot: Object) -> int:
    """Minimum number of API servers, unless hibernated."""
    return 3 if failure_tolerance(shoot) else 2


def controller_managers(shoot: Object) -> int:
    """Number of replicas: one leads, another takes over."""
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
        objects: in the Shoot. The clean-up before its deletion spares them.
        namespace: of the Shoot, in the seed.
        keep_objects: whether they stay when the ManagedResource is deleted.
        labels: additional labels of the ManagedResource.
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
    """Same as `in_shoot`, with a Secret for each part."""
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
    """A Secret that requests a token of a ServiceAccount in `kube-system` in the Shoot.

    Args:
        account: name of the ServiceAccount.
        namespace: of the Secret.
        name: of the Secret; empty: derived from the ServiceAccount.
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
    """Argument for feature gates; empty if none are set."""
    return [f"--feature-gates={_switches(features)}"] if features else []


def runtime_config_argument(apis: Mapping[str, bool]) -> list[str]:
    return [f"--runtime-config={_switches(apis)}"] if apis else []


def _switches(values: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(values.items()))
