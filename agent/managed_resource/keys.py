"""Names that are part of the ManagedResource API, and who is responsible for which ManagedResource.

A ManagedResource carries the finalizer of the class whose instance manages it. When its class changes, the
former instance cleans up in its own target cluster first; the new one waits until the finalizer is gone.
"""

from collections.abc import Sequence

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

# --- on ManagedResources and on objects in manifests
IGNORE = f"{GROUP}/ignore"

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

# --- what is stamped on every applied object
MANAGED_BY = f"{GROUP}/managed-by"
ORIGIN = f"{GROUP}/origin"
DESCRIPTION = f"{GROUP}/description"
DESCRIPTION_TEXT = (
    "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n"
    "Any modifications are discarded and the resource is returned to the original state."
)

# --- classes and finalizers
FINALIZER = f"{GROUP}/{MANAGER}"
DEFAULT_CLASS = "resources"
EVERY_CLASS = "*"


def finalizer_of(resource_class: str) -> str:
    """The finalizer that an instance of this class puts on its ManagedResources."""
    if resource_class in {"", DEFAULT_CLASS, EVERY_CLASS}:
        return FINALIZER
    return f"{FINALIZER}-{resource_class}"


def is_responsible(resource_class: str, of: str | None) -> bool:
    """Whether an instance of `resource_class` manages a ManagedResource whose `spec.class` is `of`."""
    own = resource_class or DEFAULT_CLASS
    return own in {EVERY_CLASS, of or DEFAULT_CLASS}


def must_wait(finalizers: Sequence[str], *, resource_class: str, of: str | None) -> bool:
    """Whether another instance has to clean up before this one takes over.

    Only the first finalizer of this family counts, as in the original: there is never more than one unless
    somebody puts it there by hand.
    """
    first = next((name for name in finalizers if name.startswith(FINALIZER)), None)
    return first is not None and first != finalizer_of(resource_class) and is_responsible(resource_class, of)
