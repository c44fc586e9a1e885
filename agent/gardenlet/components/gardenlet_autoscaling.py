"""Requests of the gardenlet itself, as an autoscaler finds them right."""

from agent.gardenlet.components.parts import GARDEN, autoscaler
from kube.objects import Object

NAME = "gardenlet"


def objects() -> list[Object]:
    """Where there are VerticalPodAutoscalers."""
    policy = {"containerName": NAME, "minAllowed": {"memory": "75Mi"}}
    return [autoscaler(f"{NAME}-vpa", GARDEN, deployment=NAME, policy=policy)]
