"""Which control loops there are: what a leader runs, and what every replica holds ready for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

import structlog

from agent.api import MANAGED_RESOURCES
from agent.context import Context, ControlLoop
from agent.health.controller import HealthLoop, ProgressLoop
from agent.managed_kinds import ManagedKinds
from agent.managed_resource import keys
from agent.managed_resource.controller import ManagedResourceLoop
from agent.managed_resource.source import Source
from agent.network_policy.controller import NetworkPolicyLoop
from agent.status import StatusWriter
from config.schema_controllers import Controllers
from process.clusters import Cluster

_SECRETS_BYTES = 16 << 20


def hold_ready(source: Cluster) -> Source:
    """The caches that every replica keeps, so that it can take over at once."""
    return Source(client=source.client, caches=source.caches, memory=_SECRETS_BYTES)


_OPTIONAL: Mapping[str, Callable[[Context], ControlLoop]] = {
    "network_policy": NetworkPolicyLoop,
}
"""The control loops that are switched on by `enabled` in their block of `controllers`, by the block's name."""


def compose_controllers(context: Context, *, held: Source) -> Sequence[ControlLoop]:
    """The control loops that the configuration switches on; called when this process begins to lead."""
    controllers = context.config.controllers
    managed_by = controllers.managed_resource.managed_by_label_value
    kinds = ManagedKinds(context.target.caches, label_selector=f"{keys.MANAGED_BY}={managed_by}")
    status = StatusWriter(context.source.client, held.managed_resources, MANAGED_RESOURCES)
    _log_missing(controllers)
    return [
        ManagedResourceLoop(context, source=held, kinds=kinds, status=status),
        HealthLoop(context, kinds, status),
        ProgressLoop(context, kinds, status),
        *(make(context) for name, make in _OPTIONAL.items() if getattr(controllers, name).enabled),
    ]


def _log_missing(controllers: Controllers) -> None:
    """Say what is switched on, but not part of this version."""
    for block in fields(controllers):
        if block.name not in _OPTIONAL and getattr(getattr(controllers, block.name), "enabled", False):
            structlog.get_logger().info(
                "A controller is switched on that this version does not have yet", missing=block.name
            )
