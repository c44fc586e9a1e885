"""Names and short names of the kinds of the garden API."""

from kube.resources import Resource

CORE_GROUP = "core.gardener.cloud"
SEED_MANAGEMENT_GROUP = "seedmanagement.gardener.cloud"
SECURITY_GROUP = "security.gardener.cloud"
OPERATIONS_GROUP = "operations.gardener.cloud"
SETTINGS_GROUP = "settings.gardener.cloud"
GROUPS = frozenset({CORE_GROUP, SEED_MANAGEMENT_GROUP, SECURITY_GROUP, OPERATIONS_GROUP, SETTINGS_GROUP})
"""Groups of the kinds that a garden stores."""
AUTHENTICATION_API = "authentication.gardener.cloud/v1alpha1"
"""API version of tokens and kubeconfigs, which are issued and never stored."""


def _core(kind: str, plural: str, *short_names: str, namespaced: bool = True, version: str = "v1beta1") -> Resource:
    return Resource(CORE_GROUP, version, kind, plural, namespaced, short_names, any_size=True)


def _alpha(group: str, kind: str, plural: str, *short_names: str, namespaced: bool = True) -> Resource:
    return Resource(group, "v1alpha1", kind, plural, namespaced, short_names, any_size=True)


BACKUP_BUCKETS = _core("BackupBucket", "backupbuckets", "bbc", namespaced=False)
BACKUP_ENTRIES = _core("BackupEntry", "backupentries", "bec")
CLOUD_PROFILES = _core("CloudProfile", "cloudprofiles", "cprofile", "cpfl", namespaced=False)
CONTROLLER_DEPLOYMENTS = _core(
    "ControllerDeployment", "controllerdeployments", "ctrldeploy", namespaced=False, version="v1"
)
CONTROLLER_INSTALLATIONS = _core("ControllerInstallation", "controllerinstallations", "ctrlinst", namespaced=False)
CONTROLLER_REGISTRATIONS = _core("ControllerRegistration", "controllerregistrations", "ctrlreg", namespaced=False)
EXPOSURE_CLASSES = _core("ExposureClass", "exposureclasses", "expclass", "expcls", namespaced=False)
INTERNAL_SECRETS = _core("InternalSecret", "internalsecrets", "ins")
NAMESPACED_CLOUD_PROFILES = _core("NamespacedCloudProfile", "namespacedcloudprofiles", "nsprofile", "nscpfl")
PROJECTS = _core("Project", "projects", namespaced=False)
QUOTAS = _core("Quota", "quotas", "squota")
SECRET_BINDINGS = _core("SecretBinding", "secretbindings", "sb")
SEEDS = _core("Seed", "seeds", namespaced=False)
SHOOTS = _core("Shoot", "shoots")
SHOOT_STATES = _core("ShootState", "shootstates")

GARDENLETS = _alpha(SEED_MANAGEMENT_GROUP, "Gardenlet", "gardenlets", "gl", "glet")
MANAGED_SEEDS = _alpha(SEED_MANAGEMENT_GROUP, "ManagedSeed", "managedseeds", "ms")
MANAGED_SEED_SETS = _alpha(SEED_MANAGEMENT_GROUP, "ManagedSeedSet", "managedseedsets", "mss")
SEED_AUTOSCALERS = _alpha(SEED_MANAGEMENT_GROUP, "SeedAutoscaler", "seedautoscalers", "sas")

CREDENTIALS_BINDINGS = _alpha(SECURITY_GROUP, "CredentialsBinding", "credentialsbindings", "cb")
WORKLOAD_IDENTITIES = _alpha(SECURITY_GROUP, "WorkloadIdentity", "workloadidentities", "wi")

BASTIONS = _alpha(OPERATIONS_GROUP, "Bastion", "bastions")

OPEN_ID_CONNECT_PRESETS = _alpha(SETTINGS_GROUP, "OpenIDConnectPreset", "openidconnectpresets", "oidcps")
CLUSTER_OPEN_ID_CONNECT_PRESETS = _alpha(
    SETTINGS_GROUP, "ClusterOpenIDConnectPreset", "clusteropenidconnectpresets", "coidcps", namespaced=False
)
