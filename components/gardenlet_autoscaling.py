"""Autoscaling of the gardenlet's own requests."""

from components.parts import GARDEN, autoscaler
from components.seed_component import SeedComponent, SeedInputs
from config.gardenlet.schema import GARDENLET_AUTOSCALING
from kube.objects import Object

NAME = "gardenlet"


def _objects(_: SeedInputs) -> list[Object]:
    """VerticalPodAutoscaler of the gardenlet, for seeds that serve this kind."""
    policy = {"containerName": NAME, "minAllowed": {"memory": "75Mi"}}
    return [autoscaler(f"{NAME}-vpa", GARDEN, deployment=NAME, policy=policy)]


COMPONENT = SeedComponent(name=GARDENLET_AUTOSCALING, title=f"VPA for {NAME}", objects=_objects)
