"""Labels of Namespaces that are there before the gardenlet: by them pods and policies find the namespaces.

Nothing else of these Namespaces is the gardenlet's; see `kube.apply.shared_objects`.
"""

from collections.abc import Sequence

from agent.gardenlet.components.parts import GARDEN, made
from gardener import keys
from kube.objects import Object
from kube.resources import NAMESPACES

KUBE_SYSTEM = "kube-system"
_POD_SECURITY = "pod-security.kubernetes.io/enforce"
_ROLE = "role"


def objects(*, zones: Sequence[str]) -> list[Object]:
    """The labels and annotations, as Namespaces. Args: zones: of the Seed's provider."""
    garden = made(
        NAMESPACES,
        GARDEN,
        labels={_ROLE: GARDEN, _POD_SECURITY: "privileged", keys.HIGH_AVAILABILITY_CONSIDER: "true"},
        annotations={keys.HIGH_AVAILABILITY_ZONES: ",".join(zones)},
    )
    return [garden, made(NAMESPACES, KUBE_SYSTEM, labels={_ROLE: KUBE_SYSTEM})]
