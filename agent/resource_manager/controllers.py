"""Control loops of a leader, and the caches that every replica keeps for them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from agent.resource_manager.common.managed_resource_metrics import Sources
from agent.resource_manager.context import Context
from agent.resource_manager.health.controller import declare_health, declare_progress
from agent.resource_manager.managed_resource.controller import ManagedResourceLoop
from agent.resource_manager.managed_resource.source import Source
from agent.resource_manager.status_page.lister import LeaderState, Lister
from agent.table import Declare, Table
from config.resource_manager.schema import ResourceManagerConfiguration
from gardener import keys
from gardener.managed_resource.conditions import with_ready
from kube.apply.kinds import ManagedKinds
from kube.objects import Object
from kube.runtime.cache import Store
from kube.runtime.loop import ControlLoop
from kube.runtime.status import StatusWriter
from process.clusters import Cluster

_SECRETS_BYTES = 16 << 20


def watch_source(source: Cluster) -> Source:
    """Return the caches that every replica keeps, so that it can take over at once."""
    return Source(client=source.client, caches=source.caches, memory=_SECRETS_BYTES)


CONTROLLERS = Table[ResourceManagerConfiguration, Context](
    "agent.resource_manager",
    {
        "csr_approver.controller": lambda config: config.controllers.csr_approver.enabled,
        "garbage_collector": lambda config: config.controllers.garbage_collector.enabled,
        "istio_cluster_configuration.controller": lambda config: config.controllers.istio_cluster_configuration.enabled,
        "network_policy": lambda config: config.controllers.network_policy.enabled,
        "node.agent_reconciliation_delay": (lambda config: config.controllers.node_agent_reconciliation_delay.enabled),
        "node.critical_components.controller": lambda config: config.controllers.node_critical_components.enabled,
        # It has no switch of its own: only the webhook uses it.
        "node.high_availability_config": lambda config: config.webhooks.high_availability_config.enabled,
        "token_invalidator.controller": lambda config: config.controllers.token_invalidator.enabled,
        "token_requestor": lambda config: config.controllers.token_requestor.enabled,
    },
)
"""Controllers that can be switched off."""


def status_writer(context: Context, managed_resources: Store[Object]) -> StatusWriter:
    """Return the writer that all controllers of ManagedResources share."""
    is_wanted = context.config.controllers.health.ready_condition

    def complete(managed_resource: Object) -> Object:
        return with_ready(managed_resource, is_wanted=is_wanted, now=datetime.now(UTC))

    return StatusWriter(context.source.client, managed_resources, complete=complete)


def compose_controllers(
    context: Context, declared: Sequence[Declare[Context]], *, source_objects: Source, lister: Lister | None = None
) -> Sequence[ControlLoop]:
    """Return the control loops of ManagedResources and those of the table; called when this process begins to lead.

    `declared` are the enabled ones of the table. The lister of the status page can query all of them from then on.
    """
    controllers = context.config.controllers
    managed_by = controllers.managed_resource.managed_by_label_value
    kinds = ManagedKinds(context.target.caches, label_selector=f"{keys.MANAGED_BY}={managed_by}")
    status = status_writer(context, source_objects.managed_resources)
    managed = ManagedResourceLoop(context, source=source_objects, kinds=kinds, status=status)
    health, progress = declare_health(context, kinds, status), declare_progress(context, kinds, status)
    context.metrics.managed_resources.follow(
        Sources(
            managed_resources=managed.managed_resources,
            last_applied=managed.last_applied,
            repairs=managed.repairs,
            unhealthy=health.reconciler.findings,
            progressing=progress.reconciler.findings,
            limit=context.config.server.metrics.managed_resource_series_limit,
        )
    )
    if lister is not None:
        lister.lead(
            LeaderState(
                secrets_of_objects=managed.secrets_of_objects,
                manifest_of=managed.manifest_of,
                is_being_deleted=managed.is_being_deleted,
                has_finished=managed.has_finished,
                unhealthy=health.check.remembered,
                progressing=progress.check.remembered,
                manual=progress.check.manual,
                pods_of=progress.check.pods_of,
            )
        )
    return [managed.loop, health.loop, progress.loop, *(declare(context) for declare in declared)]
