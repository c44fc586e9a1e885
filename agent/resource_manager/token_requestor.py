"""The controller `token-requestor`, which other programs share: Secrets of the source, tokens of the target."""

from agent.resource_manager.context import Context
from agent.shared.token_requestor import controller
from kube.runtime.loop import ControlLoop


def declare(context: Context) -> ControlLoop:
    return controller.declare(
        context.config.controllers.token_requestor,
        source=context.source,
        target=context.target,
        recorder=context.recorder,
        metrics=context.metrics.tokens,
    )
