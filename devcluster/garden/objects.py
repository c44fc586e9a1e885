"""Objects that make a cluster a garden, in order, each with its path."""

import base64
from collections.abc import Iterator
from pathlib import Path

import yaml

from devcluster.api import Api
from gardener.api.definition import custom_resource_definition
from gardener.api.garden.definitions import DEFINITIONS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.garden.seed_graph import of_seed as node_of_seed
from gardener.keys import USABLE_BY_SEED_PREFIX
from kube.errors import Forbidden, NotFound
from kube.jwt import make_key
from kube.objects import Object, key
from kube.resources import (
    API_SERVICES,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    PRIORITY_CLASSES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICES,
)
from localprocesses.local import HOST, wait_until

NAMESPACE = "garden"
_SERVICE = "gardener-resource-manager"
ADMISSION_ACCOUNT = "gardener-resource-manager-webhooks"
CONTROLLER_MANAGER_ACCOUNT = "gardener-controller-manager"
SCHEDULER_ACCOUNT = "gardener-scheduler"
GARDENLET_ACCOUNT = "gardenlet"
DEMO_DATA = Path(__file__).with_name("data.yaml")
_MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
_ROLES = (
    "instances/garden/webhooks-role.yaml",
    "base/controller-manager/leader-election.yaml",
    "instances/controller-manager/role.yaml",
    "instances/controller-manager/other-namespaces/role.yaml",
    "base/scheduler/leader-election.yaml",
    "instances/scheduler/role.yaml",
)
_OF_SEED = (
    "base/system-priority/priority-class.yaml",
    "base/gardenlet/leader-election.yaml",
    "instances/gardenlet/role.yaml",
)
_ADMISSION_SECONDS, _AGAIN_SECONDS = 60.0, 0.5
_RESOURCES = {
    (each.api_version, each.kind): each
    for each in (
        API_SERVICES,
        NAMESPACES,
        SERVICES,
        SECRETS,
        CONFIG_MAPS,
        MANAGED_RESOURCES,
        CUSTOM_RESOURCE_DEFINITIONS,
        CLUSTER_ROLES,
        CLUSTER_ROLE_BINDINGS,
        ROLES,
        ROLE_BINDINGS,
        PRIORITY_CLASSES,
        *(definition.resource for definition in DEFINITIONS),
    )
}


def apply(api: Api, obj: Object) -> Object:
    """Apply an object, and return it. The admission server of a busy computer may observe references later than others.

    Raises:
        LocalProcessError: it is refused all the same.
        KubeError: another failure.
    """
    answers, refusals = list[Object](), [""]

    def is_admitted() -> bool:
        try:
            answers.append(api.apply(path(obj), obj))
        except Forbidden as error:
            refusals.append(str(error))
        return bool(answers)

    wait_until(
        is_admitted,
        what=f"{obj['kind']} {key(obj)} to be admitted",
        within=_ADMISSION_SECONDS,
        pause=_AGAIN_SECONDS,
        explain=lambda: refusals[-1],
    )
    return answers[0]


def path(obj: Object) -> str:
    """Path of the object itself."""
    where = key(obj)
    return _RESOURCES[obj["apiVersion"], obj["kind"]].path_of(where)


def definitions(conversion: Object) -> list[Object]:
    """The CustomResourceDefinitions.

    Args:
        conversion: `spec.conversion.webhook` of the kind with two versions.
    """
    return [custom_resource_definition(each, conversion=conversion if each.others else None) for each in DEFINITIONS]


def roles() -> Iterator[Object]:
    """Namespaces, and the rights that the manifests give to the programs."""
    for file in ("namespaces", "operators", "projects", "everybody", "seeds"):
        yield from _read(_MANIFESTS / "base" / "garden" / f"{file}.yaml")
    for file in _ROLES:
        yield from map(_in_namespace, _read(_MANIFESTS / file))


def of_seed() -> Iterator[Object]:
    """Objects in a seed before its gardenlet."""
    yield {**NAMESPACES.type_meta, "metadata": {"name": NAMESPACE}}
    for file in _OF_SEED:
        yield from map(_in_namespace, _read(_MANIFESTS / file))


def confirm(api: Api, seed: Object) -> None:
    """Let the gardenlet of a Seed use the objects that the Seed names, like an operator; missing ones are created."""
    label = {f"{USABLE_BY_SEED_PREFIX}{key(seed).name}": "true"}
    for resource, where in node_of_seed(seed).named:
        try:
            api.patch(resource.path_of(where), {"metadata": {"labels": label}})
        except NotFound:
            meta = {"name": where.name, "namespace": where.namespace, "labels": label}
            api.create(resource.path(namespace=where.namespace), {**resource.type_meta, "metadata": meta})


def _in_namespace(obj: Object) -> Object:
    """Fill in the namespace of manifests without one, like kustomize."""
    if _RESOURCES[obj["apiVersion"], obj["kind"]].namespaced:
        obj = {**obj, "metadata": {"namespace": NAMESPACE, **obj["metadata"]}}
    subjects = [{**subject, "namespace": NAMESPACE} for subject in obj.get("subjects", ())]
    return {**obj, "subjects": subjects} if subjects else obj


def tokens(port: int, ca: str) -> Iterator[Object]:
    """Objects that make the API server pass on requests for tokens.

    Args:
        port: port of the server of tokens on this computer.
        ca: CA by which the API server verifies it, in base64.
    """
    meta = {"namespace": NAMESPACE, "name": _SERVICE}
    yield {**SERVICES.type_meta, "metadata": meta, "spec": {"type": "ExternalName", "externalName": HOST}}
    (passed_on,) = _read(_MANIFESTS / "instances" / "garden" / "api-service.yaml")
    spec = {**passed_on["spec"], "caBundle": ca}
    yield {**passed_on, "spec": {**spec, "service": {"namespace": NAMESPACE, "name": _SERVICE, "port": port}}}


def issuer() -> Object:
    """Issuer of tokens, with a new key."""
    data = {"issuer": b"https://issuer.garden.example", "key.pem": make_key()}
    encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    meta = {"namespace": NAMESPACE, "name": "workload-identity-issuer"}
    return {**SECRETS.type_meta, "metadata": meta, "data": encoded}


def demo_data() -> Iterator[Object]:
    return _read(DEMO_DATA)


def _read(file: Path) -> Iterator[Object]:
    yield from yaml.safe_load_all(file.read_bytes())
