"""Copies of what a Shoot refers to in the garden, for its extensions: `ref-<name>`, in its namespace in the seed."""

from collections.abc import Iterable

from agent.gardenlet.components.parts import SEED_CLASS
from gardener.managed_resource.bundle import managed_resource
from kube.objects import Object, annotations, labels, metadata

NAME = "referenced-resources"
_PREFIX = "ref-"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_FIELDS = ("apiVersion", "kind", "type", "data", "binaryData", "immutable")


def objects(namespace: str, referenced: Iterable[Object]) -> list[Object]:
    """None: nothing is referred to. Args: namespace: of the Shoot. referenced: Secrets and ConfigMaps of the garden."""
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


def copy(obj: Object, namespace: str) -> Object:
    meta: Object = {"name": f"{_PREFIX}{metadata(obj)['name']}", "namespace": namespace}
    if labels(obj):
        meta["labels"] = labels(obj)
    if notes := {name: text for name, text in annotations(obj).items() if name != _LAST_APPLIED}:
        meta["annotations"] = notes
    return {**{field: obj[field] for field in _FIELDS if obj.get(field) is not None}, "metadata": meta}
