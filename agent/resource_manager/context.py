"""Context of control loops: the seam between the process and the controllers."""

from dataclasses import dataclass, field
from functools import partial

from agent.resource_manager.common.managed_resource_metrics import ManagedResourceCollector
from agent.resource_manager.common.recent_changes import RecentChanges
from agent.shared.token_requestor.metrics import TokenCollector
from config.resource_manager import COMPONENT
from config.resource_manager.schema import ResourceManagerConfiguration
from gardener.health.checks.registry import BUILT_IN, Rules
from kube.runtime.events import EventRecorder
from process.clusters import Cluster


@dataclass(frozen=True, slots=True)
class Metrics:
    """Collectors that compute their values during a scrape, from the state of the control loops."""

    managed_resources: ManagedResourceCollector = field(default_factory=ManagedResourceCollector)
    tokens: TokenCollector = field(default_factory=partial(TokenCollector, COMPONENT.metrics_prefix))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Dependencies of control loops."""

    config: ResourceManagerConfiguration
    source: Cluster
    target: Cluster
    recorder: EventRecorder
    """Records events in the source cluster."""
    target_recorder: EventRecorder
    """Records events in the target cluster; the same recorder if the clusters are the same."""
    cluster_id: str
    """Identity of the source cluster, part of the origin of objects; empty if none."""
    health_rules: Rules = BUILT_IN
    """Rules for the health of objects."""
    changes: RecentChanges = field(default_factory=lambda: RecentChanges(limit=0))
    """Record of changes of objects, for the status page."""
    metrics: Metrics = field(default_factory=Metrics)
