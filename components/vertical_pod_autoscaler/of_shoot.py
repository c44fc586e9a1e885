"""The kinds of the vertical Pod autoscaler in a Shoot that enables it."""

from collections.abc import Sequence

from components.component import Component
from components.inputs import Inputs
from gardener.api.seed_definitions import Stage, custom_resource_definitions
from kube.objects import Object


def _contents(inputs: Inputs) -> Sequence[Object]:
    is_asked = inputs.settings("verticalPodAutoscaler").get("enabled") is True
    return custom_resource_definitions(Stage.VERTICAL_POD_AUTOSCALER) if is_asked else ()


COMPONENT = Component(
    name="vpa",
    title="Kubernetes vertical pod autoscaler",
    contents=_contents,
    task="vertical-pod-autoscaler",
    after=["resource-manager-ready"],
)
