"""Names that are part of the ManagedResource API; see `agent.responsibility` for those that all controllers know."""

from agent import responsibility

GROUP = "resources.gardener.cloud"
API_VERSION = f"{GROUP}/v1alpha1"
KIND = "ManagedResource"
MANAGER = "gardener-resource-manager"
"""The name under which the API server records who set a field; the same as the original's."""

# --- on ManagedResources
OPERATION = "gardener.cloud/operation"
OPERATION_RECONCILE = "reconcile"
OPERATION_RESTORE = "restore"
OPERATION_MIGRATE = "migrate"
OPERATION_WAIT_FOR_STATE = "wait-for-state"
SERVICE_ACCOUNT = f"{GROUP}/service-account-name"
"""As whom its objects are written; an extension of ours."""

# --- on ManagedResources and on objects in manifests
IGNORE = responsibility.IGNORE

# --- on objects in manifests
MODE = f"{GROUP}/mode"
MODE_IGNORE = "Ignore"
PRESERVE_REPLICAS = f"{GROUP}/preserve-replicas"
PRESERVE_RESOURCES = f"{GROUP}/preserve-resources"
DELETE_ON_INVALID_UPDATE = f"{GROUP}/delete-on-invalid-update"
DELETION_PROPAGATION_ON_INVALID_UPDATE = f"{GROUP}/deletion-propagation-on-invalid-update"

# --- on live objects
KEEP_OBJECT = f"{GROUP}/keep-object"
FINALIZE_DELETION_AFTER = f"{GROUP}/finalize-deletion-after"
GARBAGE_COLLECTABLE = f"{GROUP}/garbage-collectable-reference"
REFERENCE_PREFIX = f"reference.{GROUP}/"
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"

# --- on references in the status of ManagedResources
VOLUME_CLAIMS = f"{GROUP}/volume-claims"
"""On that of a StatefulSet that is being removed: its volume claims, which go with it."""

# --- what is stamped on every applied object
MANAGED_BY = f"{GROUP}/managed-by"
ORIGIN = responsibility.ORIGIN
DESCRIPTION = f"{GROUP}/description"
DESCRIPTION_TEXT = (
    "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n"
    "Any modifications are discarded and the resource is returned to the original state."
)
