"""Components of a seed that may be left out: the configuration says which are deployed.

With a local profile, others run as processes of this computer, or are not needed there. Some are not built yet.
"""

from collections.abc import Collection

from agent.gardenlet.components.system import RESERVATION
from config.gardenlet.schema import COMPONENTS, COMPONENTS_WITH_IMAGES, GardenletConfiguration

NOT_BUILT = (
    "dependency-watchdog",
    "fluent-operator",
    "kube-apiserver-ingress",
    "vali",
)
"""What Shoots with workers, or on a cluster that is no computer of one's own, need besides."""


def deployed(config: GardenletConfiguration) -> frozenset[str]:
    """Those of the ones that may be left out."""
    profile = config.local_profile
    lacking = {
        name
        for name, images in COMPONENTS_WITH_IMAGES.items()
        if not all(getattr(config.images, image) for image in images)
    }
    return frozenset(COMPONENTS if profile is None else profile.deploy) - lacking


def left_out(config: GardenletConfiguration) -> Collection[str]:
    reservations = () if config.images.pause else (RESERVATION,)
    return sorted({*COMPONENTS, *NOT_BUILT, *reservations} - deployed(config))
