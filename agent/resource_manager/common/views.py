"""Views that several controllers share, and so their watch."""

from dataclasses import dataclass

from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.references import secret_names
from kube.objects import Key, Object, annotations, key, labels
from kube.resources import NODES
from kube.runtime.cache import View, without_managed_fields
from kube.runtime.client import Form

# --- ManagedResources


BY_SECRET = "secret"
"""Index of ManagedResources by the keys of the Secrets that they refer to."""


def _secret_keys(managed_resource: Object) -> list[Key]:
    namespace = key(managed_resource).namespace
    return [Key(namespace, name) for name in dict.fromkeys(secret_names(managed_resource))]


MANAGED_RESOURCES_VIEW = View(MANAGED_RESOURCES, without_managed_fields, indexes=((BY_SECRET, _secret_keys),))

# --- Nodes, for controllers that only need their metadata


ALL_NODES = Key("", "")
"""Key of controllers that handle all Nodes in one pass."""


@dataclass(frozen=True, slots=True)
class NodeMetadata:
    delay: str | None
    """Value of the annotation that the node agent reads."""
    agent_secret: str


def _metadata(node: Object) -> NodeMetadata:
    return NodeMetadata(
        delay=annotations(node).get(keys.RECONCILIATION_DELAY),
        agent_secret=labels(node).get(keys.NODE_AGENT_SECRET_NAME, ""),
    )


NODES_VIEW = View(NODES, _metadata, form=Form.METADATA)
