"""Control loops of a leader."""

from agent.controller_manager.context import Context
from agent.table import Table, always
from config.controller_manager.schema import ControllerManagerConfiguration

CONTROLLERS = Table[ControllerManagerConfiguration, Context](
    "agent.controller_manager",
    {
        "bastion": always,
        "certificate_signing_request": always,
        "controller_registration.extension_cluster_role": always,
        "controller_registration.installations.controller": always,
        "credentials:declare_secrets": always,
        "credentials:declare_workload_identities": always,
        "credentials_binding": always,
        "event": lambda config: config.controllers.event is not None,
        "managed_seed_set.controller": always,
        "namespaced_cloud_profile": always,
        "objects_in_use:declare_cloud_profiles": always,
        "objects_in_use:declare_controller_deployments": always,
        "objects_in_use:declare_controller_registrations": always,
        "objects_in_use:declare_exposure_classes": always,
        "objects_in_use:declare_secret_bindings": always,
        "objects_in_use:declare_seeds": always,
        "project.activity": always,
        "project.lifecycle.controller": always,
        "project.stale": always,
        "quota": always,
        "seed.backup_buckets_check": always,
        "seed.extensions_check": always,
        "seed.lifecycle": always,
        "seed.roles.controller": lambda config: config.controllers.seed_roles.enabled,
        "seed.secrets": always,
        "seed_autoscaler.controller": lambda config: config.controllers.seed_autoscaler.enabled,
        "shoot.conditions": always,
        "shoot.hibernation": always,
        "shoot.maintenance": always,
        "shoot.quota": always,
        "shoot.reference": always,
        "shoot.retry": always,
        "shoot.status_label": always,
    },
)
