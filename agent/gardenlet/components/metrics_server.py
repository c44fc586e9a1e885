"""What pods and nodes use, as an API in the cluster of a Shoot with workers."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent.gardenlet.components.access import (
    READ,
    cluster_role,
    cluster_role_binding,
    role_binding,
    rule,
    service_account,
)
from agent.gardenlet.components.control_plane import in_shoot
from agent.gardenlet.components.namespaces import KUBE_SYSTEM
from agent.gardenlet.components.parts import disruption_budget, made
from agent.gardenlet.components.shoot_pods import (
    FROM_SEED,
    SECCOMP,
    SYSTEM_COMPONENT,
    TO_API_SERVER,
    TO_KUBELET,
    TO_NAMES,
)
from agent.gardenlet.components.workloads import container, deployment, service
from gardener import keys
from gardener.references import stamp
from kube.objects import Object
from kube.resources import API_SERVICES, SECRETS

NAME = "metrics-server"
MANAGED_RESOURCE = f"shoot-core-{NAME}"
_LABELS = {"k8s-app": NAME}
_GROUP, _VERSION = "metrics.k8s.io", "v1beta1"
_PORT = 8443
_CERTIFICATES = f"/srv/{NAME}/tls"
_ADDRESSES = "InternalIP,InternalDNS,ExternalDNS,ExternalIP,Hostname"


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes:
    namespace: of the Shoot, in the seed.
    host: of the API server, as pods reach it.
    server: data of the Secret with its certificate.
    ca_bundle: by which that is verified, PEM.
    """

    namespace: str
    image: str
    host: str
    server: Mapping[str, bytes] = field(repr=False)
    ca_bundle: bytes


def objects(values: Values) -> list[Object]:
    return in_shoot(MANAGED_RESOURCE, _objects(values), namespace=values.namespace)


def _objects(values: Values) -> Iterator[Object]:
    encoded = {name: base64.b64encode(content).decode() for name, content in values.server.items()}
    secret = made(SECRETS, NAME, namespace=KUBE_SYSTEM, type="kubernetes.io/tls", data=encoded)
    yield from stamp([secret, _deployment(values)])
    made_service = service(NAME, namespace=KUBE_SYSTEM, ports=(), selects=_LABELS, labels={"kubernetes.io/name": NAME})
    ports = [{"port": 443, "targetPort": _PORT, "protocol": "TCP"}]
    yield {**made_service, "spec": {"selector": _LABELS, "ports": ports}}
    yield service_account(NAME, KUBE_SYSTEM)
    yield made(
        API_SERVICES,
        f"{_VERSION}.{_GROUP}",
        spec={
            "service": {"name": NAME, "namespace": KUBE_SYSTEM},
            "group": _GROUP,
            "version": _VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": base64.b64encode(values.ca_bundle).decode(),
        },
    )
    yield disruption_budget(NAME, KUBE_SYSTEM, labels=_LABELS)
    own = f"system:{NAME}"
    yield cluster_role(own, rule("", ("pods", "nodes", "nodes/metrics", "namespaces", "configmaps"), READ))
    yield cluster_role_binding(own, NAME, namespace=KUBE_SYSTEM, is_replaceable=True)
    yield cluster_role_binding(
        f"{NAME}:system:auth-delegator", NAME, namespace=KUBE_SYSTEM, role="system:auth-delegator", is_replaceable=True
    )
    reader = role_binding(f"{NAME}-auth-reader", KUBE_SYSTEM, NAME, role="extension-apiserver-authentication-reader")
    reader["metadata"]["annotations"] = {keys.DELETE_ON_INVALID_UPDATE: "true"}
    yield reader


def _deployment(values: Values) -> Object:
    command = [
        f"/{NAME}",
        "--authorization-always-allow-paths=/livez,/readyz",
        "--profiling=false",
        "--cert-dir=/home/certdir",
        f"--secure-port={_PORT}",
        "--kubelet-insecure-tls",
        f"--kubelet-preferred-address-types={_ADDRESSES}",
        f"--tls-cert-file={_CERTIFICATES}/tls.crt",
        f"--tls-private-key-file={_CERTIFICATES}/tls.key",
    ]
    its_container = container(
        NAME,
        values.image,
        cpu="50m",
        memory="150Mi",
        command=command,
        env=[{"name": "KUBERNETES_SERVICE_HOST", "value": values.host}],
        livenessProbe=_probe("/livez", after=30, every=30),
        readinessProbe=_probe("/readyz", after=5, every=10),
        volumeMounts=[{"name": NAME, "mountPath": _CERTIFICATES}],
    )
    its_container["resources"]["limits"] = {"memory": "1Gi"}
    pod = {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": NAME,
        "dnsPolicy": "Default",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "fsGroup": 65534,
            "supplementalGroups": [1],
            **SECCOMP,
        },
        "containers": [its_container],
        "volumes": [{"name": NAME, "secret": {"secretName": NAME}}],
    }
    reaches = (FROM_SEED, TO_API_SERVER, TO_NAMES, TO_KUBELET)
    return deployment(
        NAME,
        namespace=KUBE_SYSTEM,
        labels={**_LABELS, **SYSTEM_COMPONENT, keys.HIGH_AVAILABILITY_TYPE: "server"},
        selects=_LABELS,
        pod_labels={**SYSTEM_COMPONENT, **dict.fromkeys(reaches, keys.ALLOWED)},
        pod=pod,
        strategy={"rollingUpdate": {"maxUnavailable": 0}},
    )


def _probe(path: str, *, after: int, every: int) -> Object:
    return {
        "httpGet": {"path": path, "port": _PORT, "scheme": "HTTPS"},
        "initialDelaySeconds": after,
        "periodSeconds": every,
        "failureThreshold": 1,
    }
