"""Programs of the image; the `kind` in the configuration file selects one.

The resource manager is the agent and, if its file enables a webhook, the webhook server, in one process: one `/readyz`
for all of it, and an election for the control loops alone, since every replica serves. All others are as they are.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.programs import PROGRAMS as OF_THE_AGENT
from config import resource_manager
from process.configuration.fields import members
from process.program import Program
from webhooks.program import PROGRAMS as OF_THE_WEBHOOKS

if TYPE_CHECKING:
    from config.resource_manager.schema import ResourceManagerConfiguration
    from process.composition import Composition, Parts
    from process.program import Compose

TOKEN_CLASS = "shoot"
"""Fixed class of the original's token requestor. Those of the class `garden` are the gardenlet's."""


def _resource_manager() -> "Compose[ResourceManagerConfiguration]":
    from agent.resource_manager.app import compose as agent

    def compose(base: "Composition[ResourceManagerConfiguration]") -> "Parts":
        base.config = with_token_class(base.config)
        parts = agent(base)
        if not enables_a_webhook(base.config):
            return parts
        from webhooks.app import resource_manager as webhooks

        return parts + webhooks(base)

    return compose


def enables_a_webhook(config: "ResourceManagerConfiguration") -> bool:
    section = config.webhooks
    return any(getattr(section, member.attribute).enabled for member in members(type(section)))


def with_token_class(config: "ResourceManagerConfiguration") -> "ResourceManagerConfiguration":
    """Set the class if the file has none, like those of the original's deployers."""
    tokens = config.controllers.token_requestor
    if tokens.class_ is not None:
        return config
    return replace(config, controllers=replace(config.controllers, token_requestor=replace(tokens, class_=TOKEN_CLASS)))


PROGRAMS: tuple[Program[Any], ...] = (
    Program(
        name="resource-manager",
        summary="Applies ManagedResources to the target cluster, and serves webhooks.",
        component=resource_manager.COMPONENT,
        compose=_resource_manager,
    ),
    *(each for each in (*OF_THE_AGENT, *OF_THE_WEBHOOKS) if each.component is not resource_manager.COMPONENT),
)
