"""The controller `token-requestor`, which other programs have as well: Secrets of the source, tokens of the target."""

from agent.resource_manager.context import Context
from agent.shared.token_requestor import controller
from config.resource_manager import COMPONENT
from kube.runtime.loop import ControlLoop


def declare(context: Context) -> ControlLoop:
    return controller.declare(
        context.config.controllers.token_requestor,
        source=context.source,
        target=context.target,
        recorder=context.recorder,
        kubeconfig=COMPONENT.connections(context.config)["target"].kubeconfig,
        metrics=context.metrics.tokens,
    )
