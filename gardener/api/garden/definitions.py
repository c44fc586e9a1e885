"""The kinds of the garden API, one description each; `DEFINITIONS` has them all."""

from gardener.api.definition import Definition
from gardener.api.garden.backup_bucket import BACKUP_BUCKET
from gardener.api.garden.backup_entry import BACKUP_ENTRY
from gardener.api.garden.bastion import BASTION
from gardener.api.garden.cloud_profile import CLOUD_PROFILE
from gardener.api.garden.controller_deployment import CONTROLLER_DEPLOYMENT
from gardener.api.garden.controller_installation import CONTROLLER_INSTALLATION
from gardener.api.garden.controller_registration import CONTROLLER_REGISTRATION
from gardener.api.garden.credentials_binding import CREDENTIALS_BINDING
from gardener.api.garden.exposure_class import EXPOSURE_CLASS
from gardener.api.garden.gardenlet import GARDENLET
from gardener.api.garden.internal_secret import INTERNAL_SECRET
from gardener.api.garden.managed_seed import MANAGED_SEED
from gardener.api.garden.managed_seed_set import MANAGED_SEED_SET
from gardener.api.garden.namespaced_cloud_profile import NAMESPACED_CLOUD_PROFILE
from gardener.api.garden.presets import CLUSTER_OPENID_CONNECT_PRESET, OPENID_CONNECT_PRESET
from gardener.api.garden.project import PROJECT
from gardener.api.garden.quota import QUOTA
from gardener.api.garden.secret_binding import SECRET_BINDING
from gardener.api.garden.seed import SEED
from gardener.api.garden.seed_autoscaler import SEED_AUTOSCALER
from gardener.api.garden.shoot import SHOOT
from gardener.api.garden.shoot_state import SHOOT_STATE
from gardener.api.garden.workload_identity import WORKLOAD_IDENTITY

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
    """Definition of a kind; None if it is not part of the garden API."""
    return _BY_KIND.get((group, kind))


_BY_KIND = {(one.resource.group, one.resource.kind): one for one in DEFINITIONS}
