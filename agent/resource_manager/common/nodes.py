"""Nodes as those see them who need no more than their metadata."""

from dataclasses import dataclass

from gardener import keys
from kube.objects import Key, Object, annotations, labels
from kube.resources import NODES
from kube.runtime.cache import View
from kube.runtime.client import Form

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
