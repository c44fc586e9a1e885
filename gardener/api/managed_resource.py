"""The CustomResourceDefinition of ManagedResources, for programs that install it: a copy of the file in `manifests`."""

from pathlib import Path

from kube.objects import Object, mapping
from kube.yaml import Budget, load

_FILE = Path(__file__).with_suffix(".yaml")
_MOST_VALUES = 10_000


def custom_resource_definition() -> Object:
    return mapping(load(_FILE.read_text(), budget=Budget(_MOST_VALUES)))
