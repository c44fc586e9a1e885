"""The controller `networkpolicy`, which other programs share: for the target cluster."""

from agent.resource_manager.context import Context
from agent.shared.network_policy import controller
from kube.runtime.loop import ControlLoop


def declare(context: Context) -> ControlLoop:
    settings = context.config.controllers.network_policy
    return controller.declare(settings, cluster=context.target, recorder=context.target_recorder)
