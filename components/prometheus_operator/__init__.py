"""The operator that creates Prometheus servers and their configuration from objects."""

from components.manifest import manifest
from components.parts import in_seed
from components.seed_component import SeedComponent, SeedInputs
from gardener import conditions
from kube.objects import Object

NAME = "prometheus-operator"


def _objects(inputs: SeedInputs) -> list[Object]:
    images = inputs.images
    contents = manifest(__file__, image=images.prometheus_operator, config_reloader_image=images.config_reloader)
    return in_seed(NAME, contents, condition=conditions.OBSERVABILITY_COMPONENTS_HEALTHY)


COMPONENT = SeedComponent(
    name=NAME,
    title="Prometheus Operator",
    images=["prometheus_operator", "config_reloader"],
    objects=_objects,
    is_of_garden=True,
)
