"""Optional components of a seed: the configuration selects those that are deployed.

Some are not built yet.
"""

from collections.abc import Collection

from components.seed_registry import deployed
from components.system import RESERVATION
from config.gardenlet.schema import COMPONENTS, GardenletConfiguration

NOT_BUILT = (
    "dependency-watchdog",
    "fluent-operator",
    "kube-apiserver-ingress",
    "vali",
)
"""Further requirements of Shoots with workers."""


def left_out(config: GardenletConfiguration) -> Collection[str]:
    reservations = () if config.images.pause else (RESERVATION,)
    return sorted({*COMPONENTS, *NOT_BUILT, *reservations} - deployed(config))
