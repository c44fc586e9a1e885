"""The resource manager of a seed: it applies all components that are ManagedResources, and serves the webhooks.

configuration   its configuration file
webhooks        the webhook configurations that send requests to it
workload        its pods
shoot           the one of a Shoot, which applies objects in the Shoot

It is written by the gardenlet itself, since nothing else could apply it. Its webhooks must not block it: its pods carry
labels that exclude them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from components.access import (
    EVERYTHING,
    cluster_role,
    cluster_role_binding,
    rule,
    service_account,
)
from components.manifest import manifest
from components.parts import (
    GARDEN,
    allowed_ports,
    deployment_unready,
    disruption_budget,
    made,
    spread,
)
from components.resource_manager.configuration import FILE, METRICS, WEBHOOKS, of_seed
from components.resource_manager.webhooks import Client, configurations
from components.resource_manager.workload import LABELS, NAME, its_autoscaler, its_service, pod
from components.workloads import REACHES_API_SERVER, SCRAPED_IN_SEED, deployment
from gardener import keys
from gardener.references import stamp
from kube.objects import Object
from kube.resources import CONFIG_MAPS
from kube.yaml import Dumper

__all__ = ["DNS_NAMES", "LABELS", "NAME", "ROLE", "Values", "objects", "unready"]

ROLE = f"{NAME}-seed"
DNS_NAMES = tuple(f"{NAME}{suffix}" for suffix in ("", ".garden", ".garden.svc", ".garden.svc.cluster.local"))
"""Host names of its certificate."""
unready = deployment_unready
"""Readiness of its Deployment."""

_POD_LABELS = {**LABELS, keys.ROLE: "seed"}
_REACHED = {SCRAPED_IN_SEED: allowed_ports(METRICS), keys.FROM_WORLD: allowed_ports(WEBHOOKS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Parameters of the resource manager.

    Attributes:
        image: of this project.
        server_secret: with its certificate.
        ca_bundle: of that certificate, PEM.
        zones: of the Seed's provider.
        url: base URL of its webhooks for the API server, instead of its Service.
        autoscaled: whether there are VerticalPodAutoscalers.
        monitored: whether there are ServiceMonitors.
        additional_namespaces: selectors of further namespaces in which it maintains policies.
        patience: how long pods stay on failing nodes.
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
    patience: Mapping[str, int] = field(default_factory=dict)


def objects(values: Values) -> list[Object]:
    """Objects, which its webhooks exclude, since nothing serves these before its pods run."""
    config_map, its_deployment = stamp([_config_map(values), _deployment(values)])
    client = Client(namespace=GARDEN, name=NAME, ca_bundle=values.ca_bundle, url=values.url)
    return [
        service_account(NAME, GARDEN, labels=LABELS),
        cluster_role(ROLE, rule("*", "*", EVERYTHING), labels=LABELS),  # ManagedResources hold objects of any kind
        cluster_role_binding(ROLE, NAME, namespace=GARDEN, labels=LABELS),
        config_map,
        spread(its_deployment, zones=values.zones),
        its_service(GARDEN, labels=LABELS, annotations=_REACHED),
        disruption_budget(NAME, GARDEN, labels=LABELS, selects=_POD_LABELS),
        *([its_autoscaler(GARDEN, labels=LABELS, least_memory="64Mi")] if values.autoscaled else []),
        *(manifest(__file__, "monitor.yaml") if values.monitored else []),
        *configurations(NAME, client, labels=LABELS),
    ]


def _config_map(values: Values) -> Object:
    config = of_seed(name=NAME, additional_namespaces=values.additional_namespaces, patience=values.patience)
    text = yaml.dump(config, Dumper=Dumper, sort_keys=True, width=1000)
    return made(CONFIG_MAPS, NAME, namespace=GARDEN, data={FILE: text})


def _deployment(values: Values) -> Object:
    skipped = f"projected-token-mount.{keys.GROUP}/skip"
    return deployment(
        NAME,
        labels={**LABELS, keys.HIGH_AVAILABILITY_SKIP: "true"},
        selects=LABELS,
        pod_labels={**_POD_LABELS, **REACHES_API_SERVER, skipped: "true"},
        pod=pod(values.image, server_secret=values.server_secret, priority="gardener-system-critical"),
        replicas=values.replicas,
    )
