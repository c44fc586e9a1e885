"""Optional components of a seed: the configuration selects those that are deployed.

With a local profile, some run as local processes, or are not needed. Some are not built yet.
"""

from collections.abc import Collection

from components.system import RESERVATION
from config.gardenlet.schema import COMPONENTS, GardenletConfiguration

NOT_BUILT = (
    "dependency-watchdog",
    "fluent-operator",
    "kube-apiserver-ingress",
    "vali",
)
"""Further requirements of Shoots with workers, and of clusters that are not local."""


def left_out(config: GardenletConfiguration) -> Collection[str]:
    reservations = () if config.images.pause else (RESERVATION,)
    return sorted({*COMPONENTS, *NOT_BUILT, *reservations} - config.components)
