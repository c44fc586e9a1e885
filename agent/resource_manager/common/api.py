"""The ManagedResource, as the controllers that work on it see it."""

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.references import secret_names
from kube.objects import Key, Object, key
from kube.runtime.cache import View, without_managed_fields

BY_SECRET = "secret"
"""The index of ManagedResources by the keys of the Secrets that they name."""


def _secret_keys(managed_resource: Object) -> list[Key]:
    namespace = key(managed_resource).namespace
    return [Key(namespace, name) for name in dict.fromkeys(secret_names(managed_resource))]


MANAGED_RESOURCES_VIEW = View(MANAGED_RESOURCES, without_managed_fields, indexes=((BY_SECRET, _secret_keys),))
"""The one view of them, so that all controllers share one watch."""
