"""Kinds without rules of their own: only required and immutable fields."""

from gardener.api.definition import Definition
from gardener.api.extensions import backup_bucket, backup_entry, bastion, container_runtime, control_plane, extension
from gardener.api.extensions.infrastructure import INFRASTRUCTURE as INFRASTRUCTURE_DEFINITION
from webhooks.handlers.extension_validation.kind import Kind
from webhooks.handlers.extension_validation.rules.go_types import Declarations, typed


def _plain(
    definition: Definition,
    noun: str,
    *,
    required: tuple[str, ...],
    immutable: tuple[str, ...],
    declared: Declarations | None = None,
) -> Kind:
    return Kind(
        typed=typed(definition, declared or {}),
        resource=definition.resource,
        noun=noun,
        required=("spec.type", *required),
        immutable=("spec.type", *immutable),
    )


BACKUP_BUCKET = _plain(
    backup_bucket.BACKUP_BUCKET,
    "backup bucket",
    required=("spec.region", "spec.secretRef.name"),
    immutable=("spec.region",),
)

BACKUP_ENTRY = _plain(
    backup_entry.BACKUP_ENTRY,
    "backup entry",
    required=("spec.bucketName", "spec.region", "spec.secretRef.name"),
    immutable=(),
)

BASTION = _plain(bastion.BASTION, "bastion", required=("spec.userData", "spec.ingress"), immutable=("spec.userData",))

CONTAINER_RUNTIME = _plain(
    container_runtime.CONTAINER_RUNTIME,
    "container runtime",
    required=("spec.binaryPath", "spec.workerPool.name"),
    immutable=("spec.workerPool.name",),
    declared={"workerPool.selector": "value"},
)

CONTROL_PLANE = _plain(
    control_plane.CONTROL_PLANE,
    "control plane",
    required=("spec.region", "spec.secretRef.name"),
    immutable=("spec.region",),
    declared={"purpose": "-"},
)

EXTENSION = _plain(extension.EXTENSION, "extension", required=(), immutable=())

INFRASTRUCTURE = _plain(
    INFRASTRUCTURE_DEFINITION,
    "infrastructure",
    required=("spec.region", "spec.secretRef.name"),
    immutable=("spec.region",),
)
