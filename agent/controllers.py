"""Which control loops there are: what a leader runs, and what every replica holds ready for them."""

from collections.abc import Sequence

import structlog

from agent.api import MANAGED_RESOURCES
from agent.context import Context, ControlLoop
from agent.health.controller import HealthLoop, ProgressLoop
from agent.managed_kinds import ManagedKinds
from agent.managed_resource import keys
from agent.managed_resource.controller import ManagedResourceLoop
from agent.managed_resource.source import Source
from agent.status import StatusWriter
from config.schema import ResourceManagerConfiguration
from process.clusters import Cluster

_SECRETS_BYTES = 16 << 20


def hold_ready(source: Cluster) -> Source:
    """The caches that every replica keeps, so that it can take over at once."""
    return Source(client=source.client, caches=source.caches, memory=_SECRETS_BYTES)


def _missing(config: ResourceManagerConfiguration) -> list[str]:
    """What is switched on, but not part of this version."""
    controllers = {name: getattr(config.controllers, name) for name in config.controllers.__dataclass_fields__}
    return [name for name, block in controllers.items() if getattr(block, "enabled", False)]


def compose_controllers(context: Context, *, held: Source) -> Sequence[ControlLoop]:
    """The control loops that the configuration switches on; called when this process begins to lead."""
    for name in _missing(context.config):
        structlog.get_logger().info("A controller is switched on that this version does not have yet", missing=name)
    managed_by = context.config.controllers.managed_resource.managed_by_label_value
    kinds = ManagedKinds(context.target.caches, label_selector=f"{keys.MANAGED_BY}={managed_by}")
    status = StatusWriter(context.source.client, held.managed_resources, MANAGED_RESOURCES)
    return [
        ManagedResourceLoop(context, source=held, kinds=kinds, status=status),
        HealthLoop(context, kinds, status),
        ProgressLoop(context, kinds, status),
    ]
