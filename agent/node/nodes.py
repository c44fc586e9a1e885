"""Nodes as those see them who need no more than their metadata."""

from dataclasses import dataclass

from kube.cache import View
from kube.client import Form
from kube.objects import Object, annotations, labels
from kube.resources import NODES

DELAY = "node-agent.gardener.cloud/reconciliation-delay"
AGENT_SECRET = "worker.gardener.cloud/gardener-node-agent-secret-name"
"""A label: the Secret with the configuration of the agent on this Node."""


@dataclass(frozen=True, slots=True)
class NodeMetadata:
    delay: str | None
    """The annotation that the node agent reads."""
    agent_secret: str


def _metadata(node: Object) -> NodeMetadata:
    return NodeMetadata(delay=annotations(node).get(DELAY), agent_secret=labels(node).get(AGENT_SECRET, ""))


NODES_VIEW = View(NODES, _metadata, form=Form.METADATA)
