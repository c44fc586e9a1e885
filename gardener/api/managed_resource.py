"""The CustomResourceDefinition of ManagedResources, for programs that install it: a copy of the file in `manifests`."""

from importlib import resources

from kube.objects import Object, mapping
from kube.yaml import Budget, load

_FILE = "managed_resource.yaml"
_MOST_VALUES = 10_000


def custom_resource_definition() -> Object:
    return mapping(load(resources.files(__package__).joinpath(_FILE).read_text(), budget=Budget(_MOST_VALUES)))
