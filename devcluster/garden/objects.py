"""What is applied to a cluster to make it a garden, in order, each with its path."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from gardener.api.definition import custom_resource_definition
from gardener.api.garden.definitions import DEFINITIONS
from kube.objects import Object, key
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
)

NAMESPACE = "garden"
ADMISSION_ACCOUNT = "gardener-resource-manager-webhooks"
CONTROLLER_MANAGER_ACCOUNT = "gardener-controller-manager"
SCHEDULER_ACCOUNT = "gardener-scheduler"
DEMO_DATA = Path(__file__).with_name("data.yaml")
_MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
_ROLES = (
    "garden/webhooks-role.yaml",
    "controller-manager/role.yaml",
    "controller-manager/other-namespaces/role.yaml",
    "scheduler/role.yaml",
)
_RESOURCES = {
    (each.api_version, each.kind): each
    for each in (
        NAMESPACES,
        SECRETS,
        CUSTOM_RESOURCE_DEFINITIONS,
        CLUSTER_ROLES,
        CLUSTER_ROLE_BINDINGS,
        ROLES,
        ROLE_BINDINGS,
        *(definition.resource for definition in DEFINITIONS),
    )
}


def path(obj: Object) -> str:
    """Of the object itself."""
    where = key(obj)
    return _RESOURCES[obj["apiVersion"], obj["kind"]].path(namespace=where.namespace, name=where.name)


def definitions(conversion: Object) -> list[Object]:
    """The CustomResourceDefinitions.

    Args:
        conversion: `spec.conversion.webhook` of the kind that has two versions.
    """
    return [custom_resource_definition(each, conversion=conversion if each.others else None) for each in DEFINITIONS]


def roles() -> Iterator[Object]:
    """With namespaces, and with the rights that the manifests give to the programs."""
    for file in ("namespaces", "operators", "projects", "everybody", "seeds"):
        yield from _read(_MANIFESTS / "base" / "garden" / f"{file}.yaml")
    for file in _ROLES:
        for obj in _read(_MANIFESTS / "instances" / file):
            # In the manifests it is kustomize that fills in the namespace.
            subjects = [{**subject, "namespace": NAMESPACE} for subject in obj.get("subjects", ())]
            yield {**obj, "subjects": subjects} if subjects else obj


def demo_data() -> Iterator[Object]:
    return _read(DEMO_DATA)


def _read(file: Path) -> Iterator[Object]:
    yield from yaml.safe_load_all(file.read_bytes())
