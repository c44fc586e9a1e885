"""All kinds that have webhooks of the garden API, in alphabetical order."""

from typing import Any

from config.webhooks import schema
from webhooks.descriptor import ConversionWebhook, Webhook
from webhooks.garden import conversion
from webhooks.garden.backup_bucket.kind import BACKUP_BUCKET
from webhooks.garden.backup_entry.kind import BACKUP_ENTRY
from webhooks.garden.bastion.kind import BASTION
from webhooks.garden.cloud_profile.kind import CLOUD_PROFILE
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.controller_deployment.kind import CONTROLLER_DEPLOYMENT
from webhooks.garden.controller_installation.kind import CONTROLLER_INSTALLATION
from webhooks.garden.controller_registration.kind import CONTROLLER_REGISTRATION
from webhooks.garden.credentials_binding.kind import CREDENTIALS_BINDING
from webhooks.garden.domain_secret.kind import DOMAIN_SECRET
from webhooks.garden.engine import NAME, webhooks_of
from webhooks.garden.exposure_class.kind import EXPOSURE_CLASS
from webhooks.garden.gardenlet.kind import GARDENLET
from webhooks.garden.internal_secret.kind import INTERNAL_SECRET
from webhooks.garden.managed_seed.kind import MANAGED_SEED
from webhooks.garden.managed_seed_set.kind import MANAGED_SEED_SET
from webhooks.garden.namespace.kind import NAMESPACE
from webhooks.garden.namespaced_cloud_profile.kind import NAMESPACED_CLOUD_PROFILE
from webhooks.garden.oidc_presets.kind import CLUSTER_PRESET, PRESET
from webhooks.garden.project.kind import PROJECT
from webhooks.garden.quota.kind import QUOTA
from webhooks.garden.secret_binding.kind import SECRET_BINDING
from webhooks.garden.seed.kind import SEED
from webhooks.garden.seed_autoscaler.kind import SEED_AUTOSCALER
from webhooks.garden.shoot.kind import SHOOT
from webhooks.garden.shoot_state.kind import SHOOT_STATE
from webhooks.garden.workload_identity.kind import WORKLOAD_IDENTITY

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
)
"""The mutating ones before those that validate."""
