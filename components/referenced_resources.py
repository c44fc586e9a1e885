"""Copies of a Shoot's referenced resources in the garden, for its extensions: `ref-<name>` in its namespace."""

from collections.abc import Iterable

from components.parts import SEED_CLASS
from gardener.managed_resource.bundle import managed_resource
from kube.objects import Object, metadata

NAME = "referenced-resources"
_PREFIX = "ref-"
_FIELDS = ("apiVersion", "kind", "type", "data", "binaryData", "immutable")


def objects(namespace: str, referenced: Iterable[Object]) -> list[Object]:
    """Empty if there are none. Args: namespace: of the Shoot. referenced: Secrets and ConfigMaps of the garden."""
    copies = [copy(each, namespace) for each in referenced]
    return (
        managed_resource(
            NAME,
            namespace,
            copies,
            resource_class=SEED_CLASS,
            secret_name=NAME,
            forceOverwriteAnnotations=False,
        )
        if copies
        else []
    )


def name_of_copy(name: str) -> str:
    return f"{_PREFIX}{name}"


def copy(obj: Object, namespace: str) -> Object:
    """Copy without labels and annotations, by which programs of the seed could take it for a CA or token request."""
    meta: Object = {"name": name_of_copy(metadata(obj)["name"]), "namespace": namespace}
    return {**{field: obj[field] for field in _FIELDS if obj.get(field) is not None}, "metadata": meta}
