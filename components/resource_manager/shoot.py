"""The resource manager of a Shoot, which runs next to its API server, and applies objects in the Shoot.

It requests its own token for the Shoot. Without a valid one, for a new Shoot or after a long hibernation, it is started
with a certificate that is valid for minutes (`Inputs.bootstrap_secret`), and later restarted without.
"""

from collections.abc import Iterator
from dataclasses import replace

import yaml

from components.access import READ, cluster_role_binding, role, role_binding, rule, service_account
from components.component import OF_DEPLOYMENT, Component, always
from components.control_plane import (
    ALL_SCRAPE_TARGETS,
    CONTROL_PLANE,
    KUBECONFIG_DIRECTORY,
    KUBECONFIG_FILE,
    PRIORITY,
    REACHES_SHOOT,
    access_secret,
    access_secret_name,
    kubeconfig_volume,
    secret_volume,
)
from components.inputs import Inputs
from components.parts import allowed_ports, disruption_budget, made
from components.resource_manager.configuration import FILE, METRICS, WEBHOOKS, Pods, of_shoot
from components.resource_manager.webhooks import Client
from components.resource_manager.webhooks import of_shoot as webhook_configuration
from components.resource_manager.workload import LABELS, NAME, Volumes, its_autoscaler, its_service, pod
from components.secrets import tables
from components.shoot_pods import tolerations
from components.workloads import REACHES_API_SERVER, deployment
from gardener import keys
from gardener.references import stamp
from kube.objects import Object, text
from kube.paths import at
from kube.resources import CONFIG_MAPS
from kube.yaml import Dumper

MANAGED_RESOURCE = f"shoot-core-{NAME}"
_REPLICAS = 2
TOKEN_LIFETIME = "24h"
_LABELS = {**LABELS, **CONTROL_PLANE}
_REACHED = {
    ALL_SCRAPE_TARGETS: allowed_ports(METRICS),
    f"{keys.FROM_PREFIX}all-webhook-targets{keys.FROM_SUFFIX}": allowed_ports(WEBHOOKS),
}
_CHANGE = (*READ, "update", "patch")


def _objects(inputs: Inputs) -> Iterator[Object]:
    namespace = inputs.namespace
    config_map, its_deployment = stamp([_config_map(inputs), _deployment(inputs)])
    yield service_account(NAME, namespace, labels=_LABELS)
    yield role(NAME, namespace, *_rules(), labels=_LABELS)
    yield role_binding(NAME, namespace, NAME, labels=_LABELS)
    yield access_secret(NAME, namespace, lifetime=TOKEN_LIFETIME)
    yield config_map
    yield its_service(namespace, labels=_LABELS, annotations=_REACHED)
    yield disruption_budget(NAME, namespace, labels=_LABELS)
    yield its_deployment
    if inputs.autoscaled:
        yield its_autoscaler(namespace, labels=_LABELS, least_memory="64Mi")


def _pods(inputs: Inputs) -> Pods | None:
    """Settings for pods; None if pods are not mutated."""
    if not inputs.has_workers or not inputs.mutates_pods:
        return None
    return Pods(host=inputs.host, tolerations=tolerations(inputs.shoot), patience=inputs.patience)


def _rules() -> Iterator[Object]:
    yield rule(keys.GROUP, ("managedresources", "managedresources/status"), _CHANGE)
    yield rule("", "secrets", _CHANGE)
    yield rule("", ("configmaps", "events"), "create")
    yield rule("", "configmaps", ("get", "watch", "update", "patch"), names=[NAME])
    yield rule("coordination.k8s.io", "leases", "create")
    yield rule("coordination.k8s.io", "leases", ("get", "watch", "update"), names=[NAME])
    yield rule("machine.sapcloud.io", "machines", READ)


def _config_map(inputs: Inputs) -> Object:
    config = of_shoot(
        name=NAME,
        namespace=inputs.namespace,
        seed_identity=text(at(inputs.seed, "status", "clusterIdentity")),
        kubeconfig=KUBECONFIG_FILE,
        pods=_pods(inputs),
    )
    written = yaml.dump(config, Dumper=Dumper, sort_keys=True, width=1000)
    return made(CONFIG_MAPS, NAME, namespace=inputs.namespace, data={FILE: written})


def _deployment(inputs: Inputs) -> Object:
    skipped = f"projected-token-mount.{keys.GROUP}/skip"
    return deployment(
        NAME,
        namespace=inputs.namespace,
        labels={**_LABELS, keys.HIGH_AVAILABILITY_TYPE: "server"},
        selects=LABELS,
        pod_labels={**CONTROL_PLANE, **REACHES_API_SERVER, **REACHES_SHOOT, skipped: "true"},
        pod=pod(
            inputs.image(NAME),
            server_secret=inputs.secrets.current(f"{NAME}-server").name,
            priority=PRIORITY.format(400),
            more=_volumes(inputs),
        ),
        replicas=inputs.running.replicas(_REPLICAS),
    )


def _volumes(inputs: Inputs) -> Volumes:
    if inputs.bootstrap_secret:
        kubeconfig = secret_volume(inputs.bootstrap_secret)
    else:
        kubeconfig = kubeconfig_volume(inputs.secrets.current(tables.TOKEN_KUBECONFIG).name, access_secret_name(NAME))
    return {
        "root-ca": (
            "/etc/gardener-resource-manager-root-ca",
            secret_volume(inputs.secrets.bundle(tables.CA.name).name),
        ),
        "kubeconfig": (KUBECONFIG_DIRECTORY, kubeconfig),
    }


def _contents(inputs: Inputs) -> list[Object]:
    """Webhooks and the role, which is kept when the others are deleted, since the deletion requires it."""
    client = Client(
        namespace=inputs.namespace,
        name=NAME,
        ca_bundle=inputs.ca_bundle.decode(),
        url=f"https://{NAME}.{inputs.namespace}:443",
    )
    rights = cluster_role_binding(
        "gardener.cloud:target:resource-manager",
        NAME,
        namespace="kube-system",
        role="cluster-admin",
        annotations={keys.KEEP_OBJECT: "true"},
    )
    webhooks = webhook_configuration(f"{NAME}-shoot", client, labels=LABELS, has_pods=_pods(inputs) is not None)
    return [webhooks, rights]


COMPONENT = Component(
    name=NAME,
    title=NAME,
    objects=_objects,
    contents=_contents,
    secrets=lambda plane: [tables.resource_manager_server(plane.namespace, tables.CA)],
    readiness=replace(OF_DEPLOYMENT, seconds=300.0),
    awaited=f"{NAME} reports readiness",
    task="resource-manager",
    after=["api-server-ready"],
    is_of_workers=False,
    is_left_asleep=False,
    is_put_to_sleep_later=True,
    is_required=always,
)
