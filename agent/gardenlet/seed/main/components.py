"""Components of a seed that may be left out: the configuration says which are deployed.

With a local profile, others run as processes of this computer, or are not needed there. Some are not built yet.
"""

from collections.abc import Collection

from agent.gardenlet.components.system import RESERVATION
from config.gardenlet.schema import COMPONENTS, GardenletConfiguration

NOT_BUILT = (
    "dependency-watchdog",
    "fluent-operator",
    "kube-apiserver-ingress",
    "vali",
)
"""What Shoots with workers, or on a cluster that is no computer of one's own, need besides."""


def left_out(config: GardenletConfiguration) -> Collection[str]:
    reservations = () if config.images.pause else (RESERVATION,)
    return sorted({*COMPONENTS, *NOT_BUILT, *reservations} - config.components)
