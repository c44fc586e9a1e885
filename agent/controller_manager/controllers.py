"""Which control loops there are: what a leader runs."""

from agent.controller_manager.context import Context
from agent.table import Declare, Table
from config.controller_manager.schema import ControllerManagerConfiguration

CONTROLLERS = Table[ControllerManagerConfiguration, Context]()


@CONTROLLERS.always
def bastion() -> Declare[Context]:
    from agent.controller_manager.bastion.controller import declare

    return declare


@CONTROLLERS.always
def certificate_signing_request() -> Declare[Context]:
    from agent.controller_manager.certificate_signing_request.controller import declare

    return declare


@CONTROLLERS.always
def cloud_profile() -> Declare[Context]:
    from agent.controller_manager.cloud_profile.controller import declare

    return declare


@CONTROLLERS.always
def controller_deployment() -> Declare[Context]:
    from agent.controller_manager.controller_deployment.controller import declare

    return declare


@CONTROLLERS.always
def controller_registration_extension_cluster_role() -> Declare[Context]:
    from agent.controller_manager.controller_registration.extension_cluster_role.controller import declare

    return declare


@CONTROLLERS.always
def controller_registration_finalizer() -> Declare[Context]:
    from agent.controller_manager.controller_registration.finalizers.controller import declare_registrations

    return declare_registrations


@CONTROLLERS.always
def controller_registration_installations() -> Declare[Context]:
    from agent.controller_manager.controller_registration.installations.controller import declare

    return declare


@CONTROLLERS.always
def credentials_binding() -> Declare[Context]:
    from agent.controller_manager.credentials_binding.controller import declare

    return declare


@CONTROLLERS.enabled_by(lambda config: config.controllers.event is not None)
def event() -> Declare[Context]:
    from agent.controller_manager.event.controller import declare

    return declare


@CONTROLLERS.always
def exposure_class() -> Declare[Context]:
    from agent.controller_manager.exposure_class.controller import declare

    return declare


@CONTROLLERS.always
def managed_seed_set() -> Declare[Context]:
    from agent.controller_manager.managed_seed_set.controller import declare

    return declare


@CONTROLLERS.always
def namespaced_cloud_profile() -> Declare[Context]:
    from agent.controller_manager.namespaced_cloud_profile.controller import declare

    return declare


@CONTROLLERS.always
def project() -> Declare[Context]:
    from agent.controller_manager.project.main.controller import declare

    return declare


@CONTROLLERS.always
def project_activity() -> Declare[Context]:
    from agent.controller_manager.project.activity.controller import declare

    return declare


@CONTROLLERS.always
def project_stale() -> Declare[Context]:
    from agent.controller_manager.project.stale.controller import declare

    return declare


@CONTROLLERS.always
def quota() -> Declare[Context]:
    from agent.controller_manager.quota.controller import declare

    return declare


@CONTROLLERS.always
def secret_binding() -> Declare[Context]:
    from agent.controller_manager.secret_binding.controller import declare

    return declare


@CONTROLLERS.always
def secret_credentials() -> Declare[Context]:
    from agent.controller_manager.credentials.controller import declare_secrets

    return declare_secrets


@CONTROLLERS.enabled_by(lambda config: config.controllers.seed_autoscaler.enabled)
def seed_autoscaler() -> Declare[Context]:
    from agent.controller_manager.seed_autoscaler.controller import declare

    return declare


@CONTROLLERS.always
def seed_backup_buckets_check() -> Declare[Context]:
    from agent.controller_manager.seed.backup_buckets_check.controller import declare

    return declare


@CONTROLLERS.always
def seed_extensions_check() -> Declare[Context]:
    from agent.controller_manager.seed.extensions_check.controller import declare

    return declare


@CONTROLLERS.always
def seed_finalizer() -> Declare[Context]:
    from agent.controller_manager.controller_registration.finalizers.controller import declare_seeds

    return declare_seeds


@CONTROLLERS.always
def seed_lifecycle() -> Declare[Context]:
    from agent.controller_manager.seed.lifecycle.controller import declare

    return declare


@CONTROLLERS.always
def seed_secrets() -> Declare[Context]:
    from agent.controller_manager.seed.secrets.controller import declare

    return declare


@CONTROLLERS.always
def shoot_conditions() -> Declare[Context]:
    from agent.controller_manager.shoot.conditions.controller import declare

    return declare


@CONTROLLERS.always
def shoot_hibernation() -> Declare[Context]:
    from agent.controller_manager.shoot.hibernation.controller import declare

    return declare


@CONTROLLERS.always
def shoot_maintenance() -> Declare[Context]:
    from agent.controller_manager.shoot.maintenance.controller import declare

    return declare


@CONTROLLERS.always
def shoot_quota() -> Declare[Context]:
    from agent.controller_manager.shoot.quota.controller import declare

    return declare


@CONTROLLERS.always
def shoot_reference() -> Declare[Context]:
    from agent.controller_manager.shoot.reference.controller import declare

    return declare


@CONTROLLERS.always
def shoot_retry() -> Declare[Context]:
    from agent.controller_manager.shoot.retry.controller import declare

    return declare


@CONTROLLERS.always
def shoot_status_label() -> Declare[Context]:
    from agent.controller_manager.shoot.status_label.controller import declare

    return declare


@CONTROLLERS.always
def workload_identity_credentials() -> Declare[Context]:
    from agent.controller_manager.credentials.controller import declare_workload_identities

    return declare_workload_identities
