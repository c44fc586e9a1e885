"""The resource manager of a seed: what applies all components that are ManagedResources, and serves the webhooks.

configuration   its configuration file
webhooks        the webhook configurations that send requests to it

It is written by the gardenlet itself, since nothing else could apply it. Its webhooks must not stand in its own way:
its pods carry labels by which they are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from agent.gardenlet.components.access import (
    EVERYTHING,
    cluster_role,
    cluster_role_binding,
    rule,
    service_account,
)
from agent.gardenlet.components.monitors import SEED, service_monitor
from agent.gardenlet.components.parts import (
    GARDEN,
    allowed_ports,
    autoscaler,
    deployment_unready,
    disruption_budget,
    made,
    spread,
)
from agent.gardenlet.components.resource_manager.configuration import (
    CERTIFICATES,
    DIRECTORY,
    FILE,
    HEALTH,
    METRICS,
    WEBHOOKS,
    of_seed,
)
from agent.gardenlet.components.resource_manager.webhooks import Client, configurations
from agent.gardenlet.components.workloads import (
    REACHES_API_SERVER,
    SCRAPED_IN_SEED,
    container,
    container_ports,
    deployment,
    port,
    service,
)
from gardener import keys
from gardener.references import stamp
from kube.objects import Object
from kube.resources import CONFIG_MAPS
from kube.yaml import Dumper

NAME = "gardener-resource-manager"
ROLE = f"{NAME}-seed"
DNS_NAMES = tuple(f"{NAME}{suffix}" for suffix in ("", ".garden", ".garden.svc", ".garden.svc.cluster.local"))
"""Of its certificate."""
LABELS = {"app": NAME}
unready = deployment_unready
"""Of its Deployment."""

_POD_LABELS = {**LABELS, keys.ROLE: "seed"}
_TOKEN_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 43_200
_READ_BY_ALL = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What it depends on.

    Attributes:
        image: of this project.
        server_secret: with its certificate.
        ca_bundle: of that certificate, PEM.
        zones: of the Seed's provider.
        url: under which the API server reaches its webhooks, instead of its Service.
        autoscaled: whether there are VerticalPodAutoscalers.
        monitored: whether there are ServiceMonitors.
        additional_namespaces: selectors of further namespaces in which it keeps policies.
    """

    image: str
    server_secret: str
    ca_bundle: str
    zones: Sequence[str] = ()
    replicas: int = 2
    url: str = ""
    autoscaled: bool = True
    monitored: bool = True
    additional_namespaces: Sequence[Object] = ()


def objects(values: Values) -> list[Object]:
    """All that it needs itself is left out by its webhooks, which nothing serves before its pods run."""
    config_map, its_deployment = stamp([_config_map(values), _deployment(values)])
    client = Client(namespace=GARDEN, name=NAME, ca_bundle=values.ca_bundle, url=values.url)
    return [
        service_account(NAME, GARDEN, labels=LABELS),
        cluster_role(ROLE, rule("*", "*", EVERYTHING), labels=LABELS),  # whatever ManagedResources hold
        cluster_role_binding(ROLE, NAME, namespace=GARDEN, labels=LABELS),
        config_map,
        spread(its_deployment, zones=values.zones),
        _service(),
        disruption_budget(NAME, GARDEN, labels=LABELS, selects=_POD_LABELS),
        *([_autoscaler()] if values.autoscaled else []),
        *([service_monitor(SEED, NAME, selects=LABELS)] if values.monitored else []),
        *configurations(NAME, client, labels=LABELS),
    ]


def _config_map(values: Values) -> Object:
    config = of_seed(name=NAME, additional_namespaces=values.additional_namespaces)
    text = yaml.dump(config, Dumper=Dumper, sort_keys=True, width=1000)
    return made(CONFIG_MAPS, NAME, namespace=GARDEN, data={FILE: text})


def _deployment(values: Values) -> Object:
    skipped = f"projected-token-mount.{keys.GROUP}/skip"
    return deployment(
        NAME,
        labels={**LABELS, keys.HIGH_AVAILABILITY_SKIP: "true"},
        selects=LABELS,
        pod_labels={**_POD_LABELS, **REACHES_API_SERVER, skipped: "true"},
        pod=_pod(values),
        replicas=values.replicas,
    )


def _pod(values: Values) -> Object:
    token = {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}}
    root = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    namespace = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}}
    volumes = {
        "kube-api-access-gardener": (
            _TOKEN_DIRECTORY,
            {"projected": {"sources": [token, root, namespace], "defaultMode": _READ_BY_ALL}},
        ),
        "tls": (CERTIFICATES, {"secret": {"secretName": values.server_secret, "defaultMode": _READ_BY_ALL}}),
        "config": (DIRECTORY, {"configMap": {"name": NAME, "defaultMode": _READ_BY_ALL}}),
    }
    mounts = [{"name": name, "mountPath": path, "readOnly": True} for name, (path, _) in volumes.items()]
    return {
        "serviceAccountName": NAME,
        "priorityClassName": "gardener-system-critical",
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(values, mounts)],
        "volumes": [{"name": name, **source} for name, (_, source) in volumes.items()],
    }


def _container(values: Values, mounts: list[Object]) -> Object:
    return container(
        NAME,
        values.image,
        cpu="23m",
        memory="75Mi",
        args=[f"--config={DIRECTORY}/{FILE}"],
        ports=container_ports(metrics=METRICS, health=HEALTH),
        livenessProbe=_probe("/healthz", initialDelaySeconds=30, timeoutSeconds=5, failureThreshold=5),
        readinessProbe=_probe("/readyz", initialDelaySeconds=10),
        volumeMounts=mounts,
    )


def _probe(path: str, **fields: int) -> Object:
    return {"httpGet": {"path": path, "port": HEALTH, "scheme": "HTTP"}, **fields}


def _service() -> Object:
    ports = [port("metrics", METRICS), port("health", HEALTH), port("server", 443, WEBHOOKS)]
    reached = {SCRAPED_IN_SEED: allowed_ports(METRICS), keys.FROM_WORLD: allowed_ports(WEBHOOKS)}
    return service(NAME, ports=ports, selects=LABELS, labels=LABELS, annotations=reached)


def _autoscaler() -> Object:
    policy = {
        "containerName": "*",
        "controlledValues": "RequestsOnly",
        "minAllowed": {"memory": "64Mi"},
        "maxAllowed": {"cpu": "4", "memory": "10G"},
    }
    return autoscaler(f"{NAME}-vpa", GARDEN, deployment=NAME, policy=policy, labels=LABELS)
