"""Views that several controllers have in common, so that they share one watch."""

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
"""The index of ManagedResources by the keys of the Secrets that they name."""


def _secret_keys(managed_resource: Object) -> list[Key]:
    namespace = key(managed_resource).namespace
    return [Key(namespace, name) for name in dict.fromkeys(secret_names(managed_resource))]


MANAGED_RESOURCES_VIEW = View(MANAGED_RESOURCES, without_managed_fields, indexes=((BY_SECRET, _secret_keys),))

# --- Nodes, for controllers that need no more than their metadata


ALL_NODES = Key("", "")
"""The key of controllers that look at all Nodes in one pass."""


@dataclass(frozen=True, slots=True)
class NodeMetadata:
    delay: str | None
    """The annotation that the node agent reads."""
    agent_secret: str


def _metadata(node: Object) -> NodeMetadata:
    return NodeMetadata(
        delay=annotations(node).get(keys.RECONCILIATION_DELAY),
        agent_secret=labels(node).get(keys.NODE_AGENT_SECRET_NAME, ""),
    )


NODES_VIEW = View(NODES, _metadata, form=Form.METADATA)
