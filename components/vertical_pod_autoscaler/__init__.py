"""The vertical pod autoscaler of a seed, which adapts requests to usage: recommender, updater, and admission webhook.

roles   their rights
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from components.monitors import SEED, pod_monitor, service_monitor
from components.parts import GARDEN, allowed_ports, autoscaler, disruption_budget, in_seed, made
from components.secrets import tables
from components.secrets.configs import BUNDLE, Signer
from components.seed_component import SeedComponent, SeedInputs
from components.vertical_pod_autoscaler import roles
from components.vertical_pod_autoscaler.roles import ADMISSION, RECOMMENDER, UPDATER
from components.workloads import (
    REACHES_API_SERVER,
    SCRAPED_IN_SEED,
    container,
    deployment,
    port,
    service,
)
from gardener import keys
from gardener.api.kinds import POD_MONITORS, SERVICE_MONITORS
from kube.objects import Object
from kube.resources import MUTATING_WEBHOOKS

NAME = "vpa"
WEBHOOK_SERVICE = "vpa-webhook"
DNS_NAMES = tuple(f"{WEBHOOK_SERVICE}{suffix}" for suffix in ("", ".garden", ".garden.svc"))
"""Host names in the certificate of its webhook."""
_LABELS = {keys.ROLE: NAME}
_SERVER = 10250
_METRICS = {RECOMMENDER: 8942, UPDATER: 8943, ADMISSION: 8944}
_LIMIT = {RECOMMENDER: "4Gi", UPDATER: "4Gi", ADMISSION: "3Gi"}
_CERTIFICATES = "/etc/tls-certs"
_RATE = ("--kube-api-qps=100", "--kube-api-burst=120")
_LEADS = ("--leader-elect=true", f"--leader-elect-resource-namespace={GARDEN}")
_ADMISSION_ARGUMENTS = (
    *("--v=2", "--stderrthreshold=info", *_RATE, f"--client-ca-file={_CERTIFICATES}/bundle.crt"),
    *(f"--tls-cert-file={_CERTIFICATES}/tls.crt", f"--tls-private-key={_CERTIFICATES}/tls.key"),
    *(f"--address=:{_METRICS[ADMISSION]}", f"--port={_SERVER}", "--register-webhook=false"),
)
_RECOMMENDER_ARGUMENTS = (
    *("--v=3", "--stderrthreshold=info"),
    *("--pod-recommendation-min-cpu-millicores=5", "--pod-recommendation-min-memory-mb=10"),
    *("--recommendation-margin-fraction=0.050000", "--recommender-interval=1m0s", *_RATE, "--memory-saver=true"),
    *("--target-cpu-percentile=0.900000", "--recommendation-lower-bound-cpu-percentile=0.500000"),
    *("--recommendation-upper-bound-cpu-percentile=0.950000", "--target-memory-percentile=0.900000"),
    *("--recommendation-lower-bound-memory-percentile=0.500000",),
    *("--recommendation-upper-bound-memory-percentile=0.950000", *_LEADS),
)
_UPDATER_ARGUMENTS = (
    *("--min-replicas=1", "--eviction-tolerance=1.000000", "--eviction-rate-burst=1"),
    *("--eviction-rate-limit=-1.000000", "--evict-after-oom-threshold=48h0m0s", "--updater-interval=1m0s"),
    *("--stderrthreshold=info", "--v=2", *_RATE, *_LEADS),
)
_MONITORS = (POD_MONITORS, SERVICE_MONITORS)
_CERTIFICATE = tables.server(
    f"{ADMISSION}-server",
    f"{WEBHOOK_SERVICE}.{GARDEN}.svc",
    tables.CA_SEED,
    tables.service_names(WEBHOOK_SERVICE, GARDEN),
    signer=Signer.CURRENT,
)
_NAMESPACE = {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
_LAST = (
    "Webhooks are called in the order of the names of their configurations, and this name comes last. What another "
    "webhook puts into a pod after this one would not be scaled."
)


def _objects(inputs: SeedInputs) -> list[Object]:
    return in_seed(NAME, _contents(inputs))


def _contents(inputs: SeedInputs) -> Iterator[Object]:
    yield from roles.objects(_LABELS)
    yield _admission(inputs)
    yield _webhook(inputs)
    yield _recommender(inputs)
    yield _updater(inputs)
    for part in roles.PARTS:
        yield disruption_budget(part, GARDEN, labels=_LABELS, selects={"app": part})
    yield from _services()
    # The recommender can't be scaled by itself: it would lose its history.
    for part, memory in ((ADMISSION, "100Mi"), (UPDATER, "50Mi")):
        policy = {"containerName": "*", "controlledValues": "RequestsOnly", "minAllowed": {"memory": memory}}
        yield autoscaler(part, GARDEN, deployment=part, policy=policy)
    if inputs.serves(*_MONITORS):
        yield pod_monitor(SEED, RECOMMENDER, selects={"app": RECOMMENDER}, endpoint={"port": "metrics"})
        yield service_monitor(SEED, ADMISSION, selects={"app": ADMISSION})


def _admission(inputs: SeedInputs) -> Object:
    sources = [
        _file_of(inputs.secrets.bundle(tables.CA_SEED.name).name, "bundle.crt"),
        _file_of(inputs.secrets.current(_CERTIFICATE.name).name, "tls.crt", "tls.key"),
    ]
    name = "vpa-tls-certs"
    its_container = _container(
        ADMISSION,
        inputs.images.vpa_admission_controller,
        arguments=_ADMISSION_ARGUMENTS,
        requests=("30m", "200Mi"),
        ports=[{"name": "metrics", "containerPort": _METRICS[ADMISSION]}, {"name": "server", "containerPort": _SERVER}],
        env=[_NAMESPACE],
        volumeMounts=[{"name": name, "mountPath": _CERTIFICATES, "readOnly": True}],
    )
    volumes = [{"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}]
    return _deployment(ADMISSION, its_container, replicas_as="server", priority=800, volumes=volumes)


def _file_of(secret: str, *names: str) -> Object:
    return {"secret": {"name": secret, "items": [{"key": name, "path": name} for name in names]}}


def _recommender(inputs: SeedInputs) -> Object:
    its_container = _container(
        RECOMMENDER, inputs.images.vpa_recommender, arguments=_RECOMMENDER_ARGUMENTS, requests=("200m", "800M")
    )
    return _deployment(RECOMMENDER, its_container)


def _updater(inputs: SeedInputs) -> Object:
    its_container = _container(
        UPDATER, inputs.images.vpa_updater, arguments=_UPDATER_ARGUMENTS, requests=("30m", "200Mi"), env=[_NAMESPACE]
    )
    return _deployment(UPDATER, its_container)


def _container(
    part: str, image: str, *, arguments: tuple[str, ...], requests: tuple[str, str], **fields: Any
) -> Object:
    name = part.removeprefix("vpa-")
    probe = {
        "httpGet": {"path": "/health-check", "port": "metrics", "scheme": "HTTP"},
        "initialDelaySeconds": 120,
        "periodSeconds": 60,
        "timeoutSeconds": 30,
    }
    ports = [{"name": "server", "containerPort": 8080}, {"name": "metrics", "containerPort": _METRICS[part]}]
    more = {"ports": ports} | fields
    cpu, memory = requests
    its_container = container(
        name, image, cpu=cpu, memory=memory, command=[f"./{name}"], args=list(arguments), livenessProbe=probe, **more
    )
    its_container["resources"]["limits"] = {"memory": _LIMIT[part]}
    return its_container


def _deployment(
    part: str, its_container: Object, *, replicas_as: str = "controller", priority: int = 700, **pod: Any
) -> Object:
    """Args: replicas_as: its type for the webhook of the resource manager. pod: further fields of its spec."""
    own = {"app": part}
    spec = {
        "containers": [its_container],
        "priorityClassName": f"gardener-system-{priority}",
        "serviceAccountName": part,
        **pod,
    }
    return deployment(
        part,
        labels={**own, **_LABELS, keys.HIGH_AVAILABILITY_TYPE: replicas_as},
        selects=own,
        pod_labels={**_LABELS, **REACHES_API_SERVER},
        pod=spec,
    )


def _webhook(inputs: SeedInputs) -> Object:
    client = {
        "service": {"namespace": GARDEN, "name": WEBHOOK_SERVICE, "port": 443},
        "caBundle": base64.b64encode(inputs.secrets.bundle(tables.CA_SEED.name).data[BUNDLE]).decode(),
    }
    webhook = {
        "name": "vpa.k8s.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "failurePolicy": "Ignore",
        "matchPolicy": "Exact",
        "reinvocationPolicy": "IfNeeded",
        "rules": [
            _rule("", "v1", "pods", ["CREATE"]),
            _rule("autoscaling.k8s.io", "*", "verticalpodautoscalers", ["CREATE", "UPDATE"]),
        ],
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }
    return made(
        MUTATING_WEBHOOKS,
        "zzz-vpa-webhook-config-source",
        labels={keys.REMEDIATION_EXCLUDE: "true"},
        annotations={keys.GARDENER_DESCRIPTION: _LAST},
        webhooks=[webhook],
    )


def _rule(group: str, version: str, plural: str, operations: list[str]) -> Object:
    found: Mapping[str, Any] = {"apiGroups": [group], "apiVersions": [version], "resources": [plural]}
    return {**found, "operations": operations, "scope": "*"}


def _services() -> Iterator[Object]:
    metrics = _METRICS[RECOMMENDER]
    yield service(
        RECOMMENDER,
        ports=[{"port": metrics, "targetPort": metrics}],
        selects={"app": RECOMMENDER},
        annotations={SCRAPED_IN_SEED: allowed_ports(metrics)},
    )
    metrics = _METRICS[ADMISSION]
    yield service(
        WEBHOOK_SERVICE,
        ports=[port("metrics", metrics), {"name": "server", "port": 443, "targetPort": _SERVER}],
        selects={"app": ADMISSION},
        labels={"app": ADMISSION, **_LABELS},
        annotations={SCRAPED_IN_SEED: allowed_ports(metrics), keys.FROM_WORLD: allowed_ports(_SERVER)},
    )


COMPONENT = SeedComponent(
    name=NAME,
    title="Kubernetes vertical pod autoscaler",
    images=["vpa_admission_controller", "vpa_recommender", "vpa_updater"],
    objects=_objects,
    secrets=lambda _: [_CERTIFICATE],
    asks_for=_MONITORS,
    is_of_garden=True,
    is_wanted=lambda inputs: inputs.installs_autoscaler,
)
