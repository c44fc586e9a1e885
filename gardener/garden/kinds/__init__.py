"""The kinds of the garden API, one description each; `DEFINITIONS` has them all."""

from gardener.garden.definitions import Definition
from gardener.garden.kinds.backup_bucket import BACKUP_BUCKET
from gardener.garden.kinds.backup_entry import BACKUP_ENTRY
from gardener.garden.kinds.bastion import BASTION
from gardener.garden.kinds.cloud_profile import CLOUD_PROFILE
from gardener.garden.kinds.controller_deployment import CONTROLLER_DEPLOYMENT
from gardener.garden.kinds.controller_installation import CONTROLLER_INSTALLATION
from gardener.garden.kinds.controller_registration import CONTROLLER_REGISTRATION
from gardener.garden.kinds.credentials_binding import CREDENTIALS_BINDING
from gardener.garden.kinds.exposure_class import EXPOSURE_CLASS
from gardener.garden.kinds.gardenlet import GARDENLET
from gardener.garden.kinds.internal_secret import INTERNAL_SECRET
from gardener.garden.kinds.managed_seed import MANAGED_SEED
from gardener.garden.kinds.managed_seed_set import MANAGED_SEED_SET
from gardener.garden.kinds.namespaced_cloud_profile import NAMESPACED_CLOUD_PROFILE
from gardener.garden.kinds.presets import CLUSTER_OPENID_CONNECT_PRESET, OPENID_CONNECT_PRESET
from gardener.garden.kinds.project import PROJECT
from gardener.garden.kinds.quota import QUOTA
from gardener.garden.kinds.secret_binding import SECRET_BINDING
from gardener.garden.kinds.seed import SEED
from gardener.garden.kinds.seed_autoscaler import SEED_AUTOSCALER
from gardener.garden.kinds.shoot import SHOOT
from gardener.garden.kinds.shoot_state import SHOOT_STATE
from gardener.garden.kinds.workload_identity import WORKLOAD_IDENTITY

DEFINITIONS: tuple[Definition, ...] = (
    *(SEED, CLOUD_PROFILE, PROJECT, EXPOSURE_CLASS, CONTROLLER_REGISTRATION, CONTROLLER_INSTALLATION, BACKUP_BUCKET),
    *(SHOOT, NAMESPACED_CLOUD_PROFILE, QUOTA, SECRET_BINDING, BACKUP_ENTRY, INTERNAL_SECRET, SHOOT_STATE),
    CONTROLLER_DEPLOYMENT,
    *(MANAGED_SEED, MANAGED_SEED_SET, GARDENLET, SEED_AUTOSCALER),
    *(CREDENTIALS_BINDING, WORKLOAD_IDENTITY),
    BASTION,
    *(OPENID_CONNECT_PRESET, CLUSTER_OPENID_CONNECT_PRESET),
)


def definition(*, group: str, kind: str) -> Definition | None:
    """None: no kind of the garden API."""
    return _BY_KIND.get((group, kind))


_BY_KIND = {(one.resource.group, one.resource.kind): one for one in DEFINITIONS}
