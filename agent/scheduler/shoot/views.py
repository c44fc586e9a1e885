"""Cached state of the garden; for bound Shoots, which are most of them, next to nothing."""

from gardener.api.garden import CLOUD_PROFILES, NAMESPACED_CLOUD_PROFILES, SEEDS, SHOOTS
from gardener.garden.profiles import offered
from gardener.garden.scheduling import RegionConfig, SeedInfo, reports_failure, waits
from gardener.garden.scheduling.regions import PURPOSE, REGION_CONFIG
from gardener.garden.shoots import seeds_of
from kube.objects import Object, metadata, spec
from kube.paths import at
from kube.resources import CONFIG_MAPS, Resource
from kube.runtime.cache import View, without_managed_fields

NAMESPACE = "garden"
"""Namespace of the region ConfigMaps."""
BY_SEED = "seed"
"""Index by the names of the Seeds that a Shoot is on."""

_META = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")


def _shoot(shoot: Object) -> Object:
    """Keep the whole Shoot only if it may be written."""
    if waits(shoot) or reports_failure(shoot):
        return without_managed_fields(shoot)
    return {
        "metadata": {field: value for field in _META if (value := metadata(shoot).get(field)) is not None},
        "spec": {field: value for field in ("seedName", "schedulerName") if (value := spec(shoot).get(field))},
        "status": {"seedName": at(shoot, "status", "seedName")},
    }


def _offer(profile: Object, resource: Resource) -> Object:
    offer = offered(resource, profile)
    return {"type": offer.get("type"), "seedSelector": offer.get("seedSelector")} if offer else {}


def _cloud_profile(profile: Object) -> Object:
    return _offer(profile, CLOUD_PROFILES)


def _namespaced_cloud_profile(profile: Object) -> Object:
    return _offer(profile, NAMESPACED_CLOUD_PROFILES)


SHOOTS_VIEW = View(SHOOTS, _shoot, indexes=((BY_SEED, seeds_of),))
SEEDS_VIEW = View(SEEDS, SeedInfo.of)
CLOUD_PROFILES_VIEW = View(CLOUD_PROFILES, _cloud_profile)
NAMESPACED_CLOUD_PROFILES_VIEW = View(NAMESPACED_CLOUD_PROFILES, _namespaced_cloud_profile)
REGION_CONFIGS_VIEW = View(
    CONFIG_MAPS, RegionConfig.of, label_selector=f"{PURPOSE}={REGION_CONFIG}", namespace=NAMESPACE, most=2 << 20
)
