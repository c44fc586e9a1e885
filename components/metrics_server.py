"""Resource usage of pods and nodes, as an API in the cluster of a Shoot with workers."""

import base64
from collections.abc import Iterator

from components.access import (
    READ,
    cluster_role,
    cluster_role_binding,
    role_binding,
    rule,
    service_account,
)
from components.component import ON_NODES, Component
from components.inputs import Inputs
from components.namespaces import KUBE_SYSTEM
from components.parts import disruption_budget, made
from components.secrets import tables
from components.secrets.configs import BUNDLE, SignedCertificate, Signer
from components.shoot_pods import (
    FROM_SEED,
    SECCOMP,
    SYSTEM_COMPONENT,
    TO_API_SERVER,
    TO_KUBELET,
    TO_NAMES,
)
from components.workloads import container, deployment, service
from gardener import keys
from gardener.references import stamp
from kube.objects import Object
from kube.resources import API_SERVICES, SECRETS

NAME = "metrics-server"
_LABELS = {"k8s-app": NAME}
_GROUP, _VERSION = "metrics.k8s.io", "v1beta1"
_PORT = 8443
_CERTIFICATES = f"/srv/{NAME}/tls"
_ADDRESSES = "InternalIP,InternalDNS,ExternalDNS,ExternalIP,Hostname"


def _contents(inputs: Inputs) -> Iterator[Object]:
    encoded = {name: base64.b64encode(content).decode() for name, content in inputs.secrets.current(NAME).data.items()}
    secret = made(SECRETS, NAME, namespace=KUBE_SYSTEM, type="kubernetes.io/tls", data=encoded)
    yield from stamp([secret, _deployment(inputs)])
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
            "caBundle": base64.b64encode(inputs.secrets.bundle(tables.CA_METRICS_SERVER.name).data[BUNDLE]).decode(),
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


def _deployment(inputs: Inputs) -> Object:
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
        inputs.image(NAME),
        cpu="50m",
        memory="150Mi",
        command=command,
        env=[{"name": "KUBERNETES_SERVICE_HOST", "value": inputs.host_in_pods}],
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


def _certificate(_: tables.ControlPlane) -> list[SignedCertificate]:
    """Certificate by the current authority: the API server, its only client, gets the bundle in the same step."""
    names = tables.service_names(NAME, KUBE_SYSTEM)
    return [tables.server(NAME, NAME, tables.CA_METRICS_SERVER, names, signer=Signer.CURRENT)]


COMPONENT = Component(
    name=NAME,
    title=f"{NAME} system component",
    contents=_contents,
    secrets=_certificate,
    has_bundles=True,
    after=[*ON_NODES, "systems-ready"],
)
