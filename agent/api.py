"""The ManagedResource, as the controllers that work on it see it."""

from kube.cache import View, without_managed_fields
from kube.objects import Key, Object, key
from kube.resources import Resource

MANAGED_RESOURCES = Resource(
    "resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", namespaced=True
)

BY_SECRET = "secret"
"""The index of ManagedResources by the keys of the Secrets that they name."""


def secret_names(managed_resource: Object) -> list[str]:
    """In the order of `spec.secretRefs`."""
    references = (managed_resource.get("spec") or {}).get("secretRefs") or []
    return [reference.get("name") or "" for reference in references]


def _secret_keys(managed_resource: Object) -> list[Key]:
    namespace = key(managed_resource).namespace
    return [Key(namespace, name) for name in dict.fromkeys(secret_names(managed_resource))]


MANAGED_RESOURCES_VIEW = View(MANAGED_RESOURCES, without_managed_fields, indexes=((BY_SECRET, _secret_keys),))
"""The one view of them, so that all controllers share one watch."""
