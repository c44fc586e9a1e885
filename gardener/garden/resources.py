"""What the kinds of the garden API are called."""

from kube.resources import Resource

CORE_GROUP = "core.gardener.cloud"
SEED_MANAGEMENT_GROUP = "seedmanagement.gardener.cloud"
SECURITY_GROUP = "security.gardener.cloud"
OPERATIONS_GROUP = "operations.gardener.cloud"
SETTINGS_GROUP = "settings.gardener.cloud"


def _core(kind: str, plural: str, *, namespaced: bool) -> Resource:
    return Resource(CORE_GROUP, "v1beta1", kind, plural, namespaced=namespaced)


def _alpha(group: str, kind: str, plural: str, *, namespaced: bool = True) -> Resource:
    return Resource(group, "v1alpha1", kind, plural, namespaced=namespaced)


BACKUP_BUCKETS = _core("BackupBucket", "backupbuckets", namespaced=False)
BACKUP_ENTRIES = _core("BackupEntry", "backupentries", namespaced=True)
CLOUD_PROFILES = _core("CloudProfile", "cloudprofiles", namespaced=False)
CONTROLLER_DEPLOYMENTS = Resource(CORE_GROUP, "v1", "ControllerDeployment", "controllerdeployments", namespaced=False)
CONTROLLER_INSTALLATIONS = _core("ControllerInstallation", "controllerinstallations", namespaced=False)
CONTROLLER_REGISTRATIONS = _core("ControllerRegistration", "controllerregistrations", namespaced=False)
EXPOSURE_CLASSES = _core("ExposureClass", "exposureclasses", namespaced=False)
INTERNAL_SECRETS = _core("InternalSecret", "internalsecrets", namespaced=True)
NAMESPACED_CLOUD_PROFILES = _core("NamespacedCloudProfile", "namespacedcloudprofiles", namespaced=True)
PROJECTS = _core("Project", "projects", namespaced=False)
QUOTAS = _core("Quota", "quotas", namespaced=True)
SECRET_BINDINGS = _core("SecretBinding", "secretbindings", namespaced=True)
SEEDS = _core("Seed", "seeds", namespaced=False)
SHOOTS = _core("Shoot", "shoots", namespaced=True)
SHOOT_STATES = _core("ShootState", "shootstates", namespaced=True)

GARDENLETS = _alpha(SEED_MANAGEMENT_GROUP, "Gardenlet", "gardenlets")
MANAGED_SEEDS = _alpha(SEED_MANAGEMENT_GROUP, "ManagedSeed", "managedseeds")
MANAGED_SEED_SETS = _alpha(SEED_MANAGEMENT_GROUP, "ManagedSeedSet", "managedseedsets")
SEED_AUTOSCALERS = _alpha(SEED_MANAGEMENT_GROUP, "SeedAutoscaler", "seedautoscalers")

CREDENTIALS_BINDINGS = _alpha(SECURITY_GROUP, "CredentialsBinding", "credentialsbindings")
WORKLOAD_IDENTITIES = _alpha(SECURITY_GROUP, "WorkloadIdentity", "workloadidentities")

BASTIONS = _alpha(OPERATIONS_GROUP, "Bastion", "bastions")

OPEN_ID_CONNECT_PRESETS = _alpha(SETTINGS_GROUP, "OpenIDConnectPreset", "openidconnectpresets")
CLUSTER_OPEN_ID_CONNECT_PRESETS = _alpha(
    SETTINGS_GROUP, "ClusterOpenIDConnectPreset", "clusteropenidconnectpresets", namespaced=False
)
