"""Which control loops there are: what a leader runs, and what every replica holds ready for them."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from agent import managed_resource_metrics
from agent.api import MANAGED_RESOURCES
from agent.context import Context, ControlLoop
from agent.health.controller import HealthLoop, ProgressLoop
from agent.managed_kinds import ManagedKinds
from agent.managed_resource import keys
from agent.managed_resource.controller import ManagedResourceLoop
from agent.managed_resource.source import Source
from agent.managed_resource_metrics import Sources
from agent.status import StatusWriter
from agent.status_page.knowledge import Knowledge, Leading
from config.schema import ResourceManagerConfiguration
from process.clusters import Cluster

_SECRETS_BYTES = 16 << 20


def hold_ready(source: Cluster) -> Source:
    """The caches that every replica keeps, so that it can take over at once."""
    return Source(client=source.client, caches=source.caches, memory=_SECRETS_BYTES)


_OPTIONAL: Mapping[str, str] = {
    "csr_approver": "agent.csr_approver.controller:CSRApproverLoop",
    "garbage_collector": "agent.garbage_collector.controller:GarbageCollectorLoop",
    "istio_cluster_configuration": "agent.istio_cluster_configuration.controller:IstioClusterConfigurationLoop",
    "network_policy": "agent.network_policy.controller:NetworkPolicyLoop",
    "node_agent_reconciliation_delay": "agent.node.agent_reconciliation_delay.controller:AgentReconciliationDelayLoop",
    "node_critical_components": "agent.node.critical_components.controller:CriticalComponentsLoop",
    "token_invalidator": "agent.token_invalidator.controller:TokenInvalidatorLoop",
    "token_requestor": "agent.token_requestor.controller:TokenRequestorLoop",
}
"""The control loops that are switched on by `enabled` in their block of `controllers`, by the block's name."""

Make = Callable[[Context], ControlLoop]


def optional_loops(config: ResourceManagerConfiguration) -> Sequence[Make]:
    """Those that are wanted, and only these are imported: all of them take a tenth of the start.

    Called at the start, too: to import them is not for the moment when this process begins to lead.
    """
    loops = [place for name, place in _OPTIONAL.items() if getattr(config.controllers, name).enabled]
    # It has no switch of its own: it is of use to the webhook alone.
    if config.webhooks.high_availability_config.enabled:
        loops.append("agent.node.high_availability_config.controller:HighAvailabilityConfigLoop")
    return [_imported(place) for place in loops]


def _imported(place: str) -> Make:
    module, _, name = place.partition(":")
    made: Make = getattr(import_module(module), name)
    return made


def compose_controllers(context: Context, *, held: Source, knowledge: Knowledge | None = None) -> Sequence[ControlLoop]:
    """The control loops that the configuration switches on; called when this process begins to lead.

    Args: knowledge: of the status page, which can ask them from then on.
    """
    controllers = context.config.controllers
    managed_by = controllers.managed_resource.managed_by_label_value
    kinds = ManagedKinds(context.target.caches, label_selector=f"{keys.MANAGED_BY}={managed_by}")
    status = StatusWriter(context.source.client, held.managed_resources, MANAGED_RESOURCES)
    managed = ManagedResourceLoop(context, source=held, kinds=kinds, status=status)
    health, progress = HealthLoop(context, kinds, status), ProgressLoop(context, kinds, status)
    managed_resource_metrics.managed_resources.follow(
        Sources(
            managed_resources=managed.managed_resources,
            last_applied=managed.last_applied,
            repairs=managed.repairs,
            unhealthy=health.findings,
            progressing=progress.findings,
            limit=context.config.server.metrics.managed_resource_series_limit,
        )
    )
    if knowledge is not None:
        knowledge.lead(
            Leading(
                secrets_of_objects=managed.secrets_of_objects,
                is_being_deleted=managed.is_being_deleted,
                unhealthy=health.remembered,
                progressing=progress.remembered,
                pods_of=progress.pods_of,
            )
        )
    return [
        managed,
        health,
        progress,
        *(make(context) for make in optional_loops(context.config)),
    ]
