"""The resource manager of a Shoot: it runs beside the API server of the Shoot, and applies what the Shoot is to have.

Its token for the Shoot it requests itself. Without one, since the Shoot is new or has slept for longer than a token
lives, it is started with a certificate that lives for minutes (`bootstrap_secret`); then it runs again without it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from agent.gardenlet.components.access import READ, cluster_role_binding, role, role_binding, rule, service_account
from agent.gardenlet.components.control_plane import (
    ALL_SCRAPE_TARGETS,
    CONTROL_PLANE,
    KUBECONFIG_DIRECTORY,
    KUBECONFIG_FILE,
    PRIORITY,
    REACHES_SHOOT,
    Running,
    access_secret,
    access_secret_name,
    in_shoot,
    kubeconfig_volume,
    secret_volume,
)
from agent.gardenlet.components.parts import allowed_ports, disruption_budget, made
from agent.gardenlet.components.resource_manager.configuration import FILE, METRICS, WEBHOOKS, Pods, of_shoot
from agent.gardenlet.components.resource_manager.webhooks import Client
from agent.gardenlet.components.resource_manager.webhooks import of_shoot as webhook_configuration
from agent.gardenlet.components.resource_manager.workload import LABELS, NAME, Volumes, its_autoscaler, its_service, pod
from agent.gardenlet.components.workloads import REACHES_API_SERVER, deployment
from gardener import keys
from gardener.references import stamp
from kube.objects import Object
from kube.resources import CONFIG_MAPS
from kube.yaml import Dumper

MANAGED_RESOURCE = f"shoot-core-{NAME}"
TOKEN_LIFETIME = "24h"
_LABELS = {**LABELS, **CONTROL_PLANE}
_REACHED = {
    ALL_SCRAPE_TARGETS: allowed_ports(METRICS),
    f"{keys.FROM_PREFIX}all-webhook-targets{keys.FROM_SUFFIX}": allowed_ports(WEBHOOKS),
}
_CHANGE = (*READ, "update", "patch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What it depends on.

    Attributes:
        image: of this project.
        seed_identity: of the seed cluster.
        server_secret: with its certificate.
        ca_secret: the bundle of the Shoot's authority, which has signed that certificate.
        ca_bundle: its content, PEM.
        generic_token_kubeconfig: name of the Secret.
        bootstrap_secret: with a kubeconfig that is used instead of that and the token; empty: there is a token.
        url: under which the API server of the Shoot reaches its webhooks, instead of its Service.
        autoscaled: whether there are VerticalPodAutoscalers.
        pods: None: there are no workers.
    """

    namespace: str
    image: str
    seed_identity: str
    server_secret: str
    ca_secret: str
    ca_bundle: str
    generic_token_kubeconfig: str
    bootstrap_secret: str = ""
    url: str = ""
    running: Running = Running.AWAKE
    replicas: int = 2
    autoscaled: bool = True
    pods: Pods | None = None


def objects(values: Values) -> list[Object]:
    namespace = values.namespace
    config_map, its_deployment = stamp([_config_map(values), _deployment(values)])
    return [
        service_account(NAME, namespace, labels=_LABELS),
        role(NAME, namespace, *_rules(), labels=_LABELS),
        role_binding(NAME, namespace, NAME, labels=_LABELS),
        access_secret(NAME, namespace, lifetime=TOKEN_LIFETIME),
        config_map,
        its_service(namespace, labels=_LABELS, annotations=_REACHED),
        disruption_budget(NAME, namespace, labels=_LABELS),
        its_deployment,
        *([its_autoscaler(namespace, labels=_LABELS, least_memory="64Mi")] if values.autoscaled else []),
        *_in_shoot(values),
    ]


def _rules() -> Iterator[Object]:
    yield rule(keys.GROUP, ("managedresources", "managedresources/status"), _CHANGE)
    yield rule("", "secrets", _CHANGE)
    yield rule("", ("configmaps", "events"), "create")
    yield rule("", "configmaps", ("get", "watch", "update", "patch"), names=[NAME])
    yield rule("coordination.k8s.io", "leases", "create")
    yield rule("coordination.k8s.io", "leases", ("get", "watch", "update"), names=[NAME])
    yield rule("machine.sapcloud.io", "machines", READ)


def _config_map(values: Values) -> Object:
    config = of_shoot(
        name=NAME,
        namespace=values.namespace,
        seed_identity=values.seed_identity,
        kubeconfig=KUBECONFIG_FILE,
        pods=values.pods,
    )
    text = yaml.dump(config, Dumper=Dumper, sort_keys=True, width=1000)
    return made(CONFIG_MAPS, NAME, namespace=values.namespace, data={FILE: text})


def _deployment(values: Values) -> Object:
    skipped = f"projected-token-mount.{keys.GROUP}/skip"
    return deployment(
        NAME,
        namespace=values.namespace,
        labels={**_LABELS, keys.HIGH_AVAILABILITY_TYPE: "server"},
        selects=LABELS,
        pod_labels={**CONTROL_PLANE, **REACHES_API_SERVER, **REACHES_SHOOT, skipped: "true"},
        pod=pod(
            values.image,
            server_secret=values.server_secret,
            priority=PRIORITY.format(400),
            more=_volumes(values),
        ),
        replicas=values.running.replicas(values.replicas),
    )


def _volumes(values: Values) -> Volumes:
    if values.bootstrap_secret:
        kubeconfig = secret_volume(values.bootstrap_secret)
    else:
        kubeconfig = kubeconfig_volume(values.generic_token_kubeconfig, access_secret_name(NAME))
    return {
        "root-ca": ("/etc/gardener-resource-manager-root-ca", secret_volume(values.ca_secret)),
        "kubeconfig": (KUBECONFIG_DIRECTORY, kubeconfig),
    }


def _in_shoot(values: Values) -> list[Object]:
    """The role stays when all else is removed, since this needs it."""
    client = Client(
        namespace=values.namespace,
        name=NAME,
        ca_bundle=values.ca_bundle,
        url=values.url or f"https://{NAME}.{values.namespace}:443",
    )
    rights = cluster_role_binding(
        "gardener.cloud:target:resource-manager",
        NAME,
        namespace="kube-system",
        role="cluster-admin",
        annotations={keys.KEEP_OBJECT: "true"},
    )
    webhooks = webhook_configuration(f"{NAME}-shoot", client, labels=LABELS, has_pods=values.pods is not None)
    return in_shoot(MANAGED_RESOURCE, [webhooks, rights], namespace=values.namespace)
