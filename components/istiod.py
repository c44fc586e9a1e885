"""Istiod, which configures the ingress gateways of a seed from objects of Istio's kinds."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from components import istio
from components.access import (
    READ,
    cluster_role,
    cluster_role_binding,
    role,
    role_binding,
    rule,
    service_account,
)
from components.monitors import AGGREGATE, service_monitor
from components.parts import GARDEN, allowed_ports, autoscaler, in_seed, made
from components.workloads import (
    REACHES_API_SERVER,
    SCRAPED_IN_SEED,
    container,
    deployment,
    port,
    service,
)
from gardener import keys
from gardener.api.kinds import DESTINATION_RULES
from kube.objects import Object
from kube.resources import CONFIG_MAPS, POD_DISRUPTION_BUDGETS, VALIDATING_WEBHOOKS

NAME, NAMESPACE = "istiod", "istio-system"
MANAGED_RESOURCE = "istio-system"
ADDRESS = f"{NAME}.{NAMESPACE}.svc:15012"
_LABELS = {"app": NAME, "istio": "pilot"}
_USER = 1337
_ROLE, _READER, _GATEWAYS = (
    f"{name}-{NAMESPACE}" for name in ("istiod-clusterrole", "istio-reader-clusterrole", "istiod-gateway-controller")
)
_WEBHOOK_PORT, _METRICS_PORT = 10250, 15014
TOKENS = {"audience": "istio-ca", "expirationSeconds": 43200, "path": "istio-token"}

MESH = """\
accessLogFile: /dev/stdout
ingressControllerMode: "OFF"
# Configuration of a namespace applies in others only if it is exported.
defaultServiceExportTo: ["~"]
defaultVirtualServiceExportTo: ["~"]
defaultDestinationRuleExportTo: ["~"]
defaultConfig:
  discoveryAddress: istiod.istio-system.svc:15012
defaultProviders:
  metrics: [prometheus]
enablePrometheusMerge: true
rootNamespace: istio-system
trustDomain: cluster.local
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes: monitored: whether there are ServiceMonitors."""

    image: str
    monitored: bool = True


def objects(values: Values) -> list[Object]:
    return in_seed(MANAGED_RESOURCE, _contents(values), namespace=NAMESPACE)


def _contents(values: Values) -> Iterator[Object]:
    yield service_account(NAME, NAMESPACE, labels=_LABELS)
    yield cluster_role(_READER, *_reader_rules(), labels=_LABELS)
    yield cluster_role_binding(_READER, "istio-reader-service-account", namespace=NAMESPACE, labels=_LABELS)
    yield cluster_role(_ROLE, *_rules(), labels=_LABELS)
    yield cluster_role_binding(_ROLE, NAME, namespace=NAMESPACE, labels=_LABELS)
    kinds = (("apps", "deployments"), ("", "services"), ("", "serviceaccounts"))
    yield cluster_role(_GATEWAYS, *(rule(group, kind, istio.WRITE) for group, kind in kinds), labels=_LABELS)
    yield cluster_role_binding(_GATEWAYS, NAME, namespace=NAMESPACE, labels=_LABELS)
    yield role(NAME, NAMESPACE, *_own_rules(), labels=_LABELS)
    yield role_binding(NAME, NAMESPACE, NAME, labels=_LABELS)
    settings = {"mesh": MESH, "meshNetworks": "networks: {}"}
    yield made(CONFIG_MAPS, "istio", namespace=NAMESPACE, labels=_LABELS, data=settings)
    yield _deployment(values)
    yield _service()
    budget = {"minAvailable": 1, "selector": {"matchLabels": _LABELS}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    yield made(POD_DISRUPTION_BUDGETS, NAME, namespace=NAMESPACE, labels=_LABELS, spec=budget)
    policy = {"containerName": "discovery", "minAllowed": {"memory": "128Mi"}}
    yield autoscaler(NAME, NAMESPACE, deployment=NAME, policy=policy, labels=_LABELS)
    rules = {"exportTo": istio.EVERYWHERE, "host": "*.local", "trafficPolicy": {"tls": {"mode": "ISTIO_MUTUAL"}}}
    yield made(DESTINATION_RULES, "default", namespace=NAMESPACE, spec=rules)
    yield _webhooks()
    if values.monitored:
        yield service_monitor(AGGREGATE, NAME, selects=_LABELS, namespace=NAMESPACE)


def _service() -> Object:
    ports = [
        {"name": "https-sds", "port": 15012, "protocol": "TCP"},
        port("https-webhook", 443, _WEBHOOK_PORT),
        port("metrics", _METRICS_PORT),
    ]
    selectors = [*istio.IN_GATEWAYS, {"matchLabels": {"kubernetes.io/metadata.name": GARDEN}}]
    reached = {
        SCRAPED_IN_SEED: allowed_ports(_METRICS_PORT),
        keys.FROM_WORLD: allowed_ports(_WEBHOOK_PORT),
        keys.NAMESPACE_SELECTORS: orjson.dumps(selectors).decode(),
    }
    return service(NAME, namespace=NAMESPACE, ports=ports, selects=_LABELS, labels=_LABELS, annotations=reached)


def _deployment(values: Values) -> Object:
    its_container = container(
        "discovery",
        values.image,
        cpu="250m",
        memory="256Mi",
        args=[
            "discovery",
            f"--monitoringAddr=:{_METRICS_PORT}",
            f"--httpsAddr=:{_WEBHOOK_PORT}",
            "--grpcAddr=",
            "--log_output_level=default:info,ads:error",
            "--domain",
            "cluster.local",
            "--keepaliveMaxServerConnectionAge",
            "30m",
        ],
        ports=[{"containerPort": number, "protocol": "TCP"} for number in (15012, _WEBHOOK_PORT, 8080)],
        readinessProbe={
            "httpGet": {"path": "/ready", "port": 8080},
            "initialDelaySeconds": 1,
            "periodSeconds": 3,
            "timeoutSeconds": 5,
        },
        env=list(_environment()),
        securityContext={
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsGroup": _USER,
            "runAsNonRoot": True,
            "runAsUser": _USER,
        },
        volumeMounts=[
            _mount("istio-token", "/var/run/secrets/tokens"),
            {"name": "local-certs", "mountPath": "/var/run/secrets/istio-dns"},
            _mount("cacerts", "/etc/cacerts"),
            _mount("istio-kubeconfig", "/var/run/secrets/remote"),
            _mount("istio-csr-dns-cert", "/var/run/secrets/istiod/tls"),
            _mount("istio-csr-ca-configmap", "/var/run/secrets/istiod/ca"),
        ],
    )
    pod = {
        "affinity": istio.apart(_LABELS),
        "containers": [its_container],
        "priorityClassName": "gardener-system-critical",
        "securityContext": {"fsGroup": _USER},
        "serviceAccountName": NAME,
        "volumes": [
            {"name": "local-certs", "emptyDir": {"medium": "Memory"}},
            {"name": "istio-token", "projected": {"sources": [{"serviceAccountToken": TOKENS}]}},
            _optional_secret("cacerts", "cacerts"),
            _optional_secret("istio-kubeconfig", "istio-kubeconfig"),
            _optional_secret("istio-csr-dns-cert", "istiod-tls"),
            {
                "name": "istio-csr-ca-configmap",
                "configMap": {"name": "istio-ca-root-cert", "defaultMode": 0o644, "optional": True},
            },
        ],
    }
    return deployment(
        NAME,
        namespace=NAMESPACE,
        labels=_LABELS,
        pod=pod,
        pod_labels=REACHES_API_SERVER,
        pod_annotations={
            "sidecar.istio.io/inject": "false",
            # Settings are read only at the start.
            "checksum/istio-config": hashlib.sha256(MESH.encode()).hexdigest(),
        },
        replicas=2,
        revisionHistoryLimit=1,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": "25%"}},
    )


def _mount(name: str, path: str) -> Object:
    return {"name": name, "mountPath": path, "readOnly": True}


def _optional_secret(name: str, secret: str) -> Object:
    return {"name": name, "secret": {"secretName": secret, "optional": True}}


def _environment() -> Iterator[Object]:
    yield from istio.texts(REVISION="default", JWT_POLICY="third-party-jwt", PILOT_CERT_PROVIDER="istiod")
    yield from istio.fields(
        POD_NAME="metadata.name", POD_NAMESPACE="metadata.namespace", SERVICE_ACCOUNT="spec.serviceAccountName"
    )
    yield from istio.texts(
        KUBECONFIG="/var/run/secrets/remote/config",
        PILOT_TRACE_SAMPLING="1",
        PILOT_ENABLE_ANALYSIS="false",
        CLUSTER_ID="Kubernetes",
    )
    yield from istio.limits(GOMEMLIMIT="memory", GOMAXPROCS="cpu")
    yield from istio.texts(PLATFORM="")


def _webhooks() -> Object:
    """Validating webhook, whose certificate istiod adds."""
    webhook = {
        "name": "rev.validation.istio.io",
        "admissionReviewVersions": ["v1beta1", "v1"],
        "clientConfig": {"service": {"name": NAME, "namespace": NAMESPACE, "path": "/validate"}},
        "failurePolicy": "Ignore",
        "matchPolicy": "Exact",
        "rules": [
            {
                "apiGroups": [f"{name}.istio.io" for name in ("security", "networking", "telemetry", "extensions")],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["*"],
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }
    labels = {**_LABELS, "istio.io/rev": "default"}
    return made(VALIDATING_WEBHOOKS, NAME, labels=labels, webhooks=[webhook])


# --- rights

_CONFIGURATION = ("config", "security", "networking", "authentication", "rbac")
_GATEWAY_GROUPS = ("networking.x-k8s.io", "gateway.networking.k8s.io")
_SERVICES = "multicluster.x-k8s.io"
_FOUND = ("get", "watch", "list")


def _groups(*more: str) -> list[str]:
    return [f"{name}.istio.io" for name in (*_CONFIGURATION, *more)]


def _reviews() -> Iterator[Object]:
    yield rule("authentication.k8s.io", "tokenreviews", "create")
    yield rule("authorization.k8s.io", "subjectaccessreviews", "create")


def _reader_rules() -> Iterator[Object]:
    yield rule(_groups(), "*", READ)
    kinds = ("endpoints", "pods", "services", "nodes", "replicationcontrollers", "namespaces", "secrets")
    yield rule("", kinds, READ)
    yield rule("networking.istio.io", "workloadentries", _FOUND)
    yield rule(_GATEWAY_GROUPS, "gateways", _FOUND)
    yield rule("apiextensions.k8s.io", "customresourcedefinitions", READ)
    yield rule("discovery.k8s.io", "endpointslices", READ)
    yield rule(_SERVICES, "serviceexports", (*READ, "create", "delete"))
    yield rule(_SERVICES, "serviceimports", READ)
    yield rule("apps", "replicasets", READ)
    yield from _reviews()


def _rules() -> Iterator[Object]:
    admission = "admissionregistration.k8s.io"
    yield rule(admission, "mutatingwebhookconfigurations", (*READ, "update", "patch"))
    yield rule(admission, "validatingwebhookconfigurations", (*READ, "update"))
    yield rule(_groups("telemetry", "extensions"), "*", _FOUND)
    yield rule("networking.istio.io", "workloadentries", istio.WRITE)
    yield rule("networking.istio.io", "workloadentries/status", istio.WRITE)
    yield rule("apiextensions.k8s.io", "customresourcedefinitions", READ)
    yield rule("", ("pods", "nodes", "services", "namespaces", "endpoints"), READ)
    yield rule("discovery.k8s.io", "endpointslices", READ)
    yield rule("networking.k8s.io", ("ingresses", "ingressclasses"), READ)
    yield rule("networking.k8s.io", "ingresses/status", "*")
    yield rule("", "configmaps", ("create", *READ, "update"))
    yield from _reviews()
    yield rule(_GATEWAY_GROUPS, "*", _FOUND)
    yield rule(_GATEWAY_GROUPS, "*", ("update", "patch"))
    yield rule("gateway.networking.k8s.io", "gatewayclasses", ("create", "update", "patch", "delete"))
    yield rule("", "secrets", _FOUND)
    yield rule(_SERVICES, "serviceexports", (*_FOUND, "create", "delete"))
    yield rule(_SERVICES, "serviceimports", _FOUND)


def _own_rules() -> Iterator[Object]:
    yield rule("networking.istio.io", "gateways", "create")
    yield rule("", "secrets", ("create", "get", "watch", "list", "update", "delete"))
    yield rule("", "configmaps", "delete")
    yield rule("coordination.k8s.io", "leases", ("get", "update", "patch", "create"))
