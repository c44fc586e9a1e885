"""What control loops get: the seam between the process and the controllers."""

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
    """What is computed when it is scraped, from what control loops know."""

    managed_resources: ManagedResourceCollector = field(default_factory=ManagedResourceCollector)
    tokens: TokenCollector = field(default_factory=partial(TokenCollector, COMPONENT.metrics_prefix))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What control loops are made from."""

    config: ResourceManagerConfiguration
    source: Cluster
    target: Cluster
    recorder: EventRecorder
    """Writes events into the source cluster."""
    target_recorder: EventRecorder
    """Writes events into the target cluster; the same one if the clusters are one."""
    cluster_id: str
    """Identity of the source cluster, part of the origin of objects; empty: none."""
    health_rules: Rules = BUILT_IN
    """What makes objects healthy."""
    changes: RecentChanges = field(default_factory=lambda: RecentChanges(limit=0))
    """What is done to objects is noted here, for the status page."""
    metrics: Metrics = field(default_factory=Metrics)
