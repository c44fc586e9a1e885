"""Which control loops there are: what a leader runs."""

from agent.controller_manager.context import Context
from agent.table import Table, always
from config.controller_manager.schema import ControllerManagerConfiguration

CONTROLLERS = Table[ControllerManagerConfiguration, Context](
    "agent.controller_manager",
    {
        "bastion.controller": always,
        "certificate_signing_request.controller": always,
        "cloud_profile": always,
        "controller_deployment": always,
        "controller_registration.extension_cluster_role.controller": always,
        "controller_registration.finalizers:declare_registrations": always,
        "controller_registration.finalizers:declare_seeds": always,
        "controller_registration.installations.controller": always,
        "credentials.controller:declare_secrets": always,
        "credentials.controller:declare_workload_identities": always,
        "credentials_binding": always,
        "event.controller": lambda config: config.controllers.event is not None,
        "exposure_class": always,
        "managed_seed_set.controller": always,
        "namespaced_cloud_profile": always,
        "project.activity.controller": always,
        "project.lifecycle.controller": always,
        "project.stale.controller": always,
        "quota": always,
        "secret_binding": always,
        "seed.backup_buckets_check.controller": always,
        "seed.extensions_check.controller": always,
        "seed.lifecycle.controller": always,
        "seed.secrets.controller": always,
        "seed_autoscaler.controller": lambda config: config.controllers.seed_autoscaler.enabled,
        "shoot.conditions.controller": always,
        "shoot.hibernation.controller": always,
        "shoot.maintenance.controller": always,
        "shoot.quota.controller": always,
        "shoot.reference.controller": always,
        "shoot.retry.controller": always,
        "shoot.status_label.controller": always,
    },
)
