"""All kinds that have webhooks of the garden API, in alphabetical order."""

from typing import Any

from config.webhooks import schema
from webhooks.authorizers.seed import webhook as seed_webhooks
from webhooks.descriptor import ConversionWebhook, Webhook
from webhooks.garden import conversion
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.engine import NAME, webhooks_of
from webhooks.garden.kinds.backup_bucket import BACKUP_BUCKET
from webhooks.garden.kinds.backup_entry import BACKUP_ENTRY
from webhooks.garden.kinds.bastion import BASTION
from webhooks.garden.kinds.cloud_profile import CLOUD_PROFILE
from webhooks.garden.kinds.controller_deployment import CONTROLLER_DEPLOYMENT
from webhooks.garden.kinds.controller_installation import CONTROLLER_INSTALLATION
from webhooks.garden.kinds.controller_registration import CONTROLLER_REGISTRATION
from webhooks.garden.kinds.credentials_binding import CREDENTIALS_BINDING
from webhooks.garden.kinds.domain_secret import DOMAIN_SECRET
from webhooks.garden.kinds.exposure_class import EXPOSURE_CLASS
from webhooks.garden.kinds.gardenlet import GARDENLET
from webhooks.garden.kinds.internal_secret import INTERNAL_SECRET
from webhooks.garden.kinds.managed_seed import MANAGED_SEED
from webhooks.garden.kinds.managed_seed_set import MANAGED_SEED_SET
from webhooks.garden.kinds.namespace import NAMESPACE
from webhooks.garden.kinds.namespaced_cloud_profile import NAMESPACED_CLOUD_PROFILE
from webhooks.garden.kinds.oidc_presets import CLUSTER_PRESET, PRESET
from webhooks.garden.kinds.project import PROJECT
from webhooks.garden.kinds.quota import QUOTA
from webhooks.garden.kinds.secret_binding import SECRET_BINDING
from webhooks.garden.kinds.seed import SEED
from webhooks.garden.kinds.seed_autoscaler import SEED_AUTOSCALER
from webhooks.garden.kinds.shoot.kind import SHOOT
from webhooks.garden.kinds.shoot_state import SHOOT_STATE
from webhooks.garden.kinds.tenant_file import FILES_IN_CONFIG_MAPS, FILES_IN_SECRETS
from webhooks.garden.kinds.workload_identity import WORKLOAD_IDENTITY

KINDS: tuple[Kind, ...] = (
    BACKUP_BUCKET,
    BACKUP_ENTRY,
    BASTION,
    CLOUD_PROFILE,
    CLUSTER_PRESET,
    CONTROLLER_DEPLOYMENT,
    CONTROLLER_INSTALLATION,
    CONTROLLER_REGISTRATION,
    CREDENTIALS_BINDING,
    DOMAIN_SECRET,
    EXPOSURE_CLASS,
    FILES_IN_CONFIG_MAPS,
    FILES_IN_SECRETS,
    GARDENLET,
    INTERNAL_SECRET,
    MANAGED_SEED,
    MANAGED_SEED_SET,
    NAMESPACE,
    NAMESPACED_CLOUD_PROFILE,
    PRESET,
    PROJECT,
    QUOTA,
    SECRET_BINDING,
    SEED,
    SEED_AUTOSCALER,
    SHOOT,
    SHOOT_STATE,
    WORKLOAD_IDENTITY,
)

_ADMISSION = sorted((webhook for kind in KINDS for webhook in webhooks_of(kind)), key=lambda each: each.validating)

WEBHOOKS: tuple[Webhook[Any], ...] = (
    ConversionWebhook(name=NAME, path=conversion.PATH, settings=schema.Garden, converter=conversion.answer),
    *_ADMISSION,
    *seed_webhooks.WEBHOOKS,
)
"""Mutating webhooks before validating ones."""
