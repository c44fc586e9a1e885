"""Kinds without rules of their own: fields that have to be there, and fields that do not change."""

import msgspec

from gardener.api.extensions import (
    BACKUP_BUCKETS,
    BACKUP_ENTRIES,
    BASTIONS,
    CONTAINER_RUNTIMES,
    CONTROL_PLANES,
    EXTENSIONS,
    INFRASTRUCTURES,
)
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource, SecretReference
from webhooks.handlers.extension_validation.rules.typed import Raw, Typed


class BackupBucketSpec(DefaultSpec):
    region: str = ""
    secret_ref: SecretReference = SecretReference()


class BackupBucket(Resource):
    spec: BackupBucketSpec = BackupBucketSpec()


BACKUP_BUCKET = Kind(
    typed=BackupBucket,
    resource=BACKUP_BUCKETS,
    noun="backup bucket",
    required=("spec.type", "spec.region", "spec.secretRef.name"),
    immutable=("spec.type", "spec.region"),
)


class BackupEntrySpec(DefaultSpec):
    backup_bucket_provider_status: Raw = None
    region: str = ""
    bucket_name: str = ""
    secret_ref: SecretReference = SecretReference()


class BackupEntry(Resource):
    spec: BackupEntrySpec = BackupEntrySpec()


BACKUP_ENTRY = Kind(
    typed=BackupEntry,
    resource=BACKUP_ENTRIES,
    noun="backup entry",
    required=("spec.type", "spec.bucketName", "spec.region", "spec.secretRef.name"),
    immutable=("spec.type",),
)


class IPBlock(Typed):
    cidr: str = ""
    except_: list[str] | None = msgspec.field(name="except", default=None)


class BastionIngressPolicy(Typed):
    ip_block: IPBlock = IPBlock()


class BastionSpec(DefaultSpec):
    user_data: bytes | None = None
    ingress: list[BastionIngressPolicy] | None = None


class Bastion(Resource):
    spec: BastionSpec = BastionSpec()


BASTION = Kind(
    typed=Bastion,
    resource=BASTIONS,
    noun="bastion",
    required=("spec.type", "spec.userData", "spec.ingress"),
    immutable=("spec.type", "spec.userData"),
)


class LabelSelectorRequirement(Typed):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Typed):
    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class ContainerRuntimeWorkerPool(Typed):
    name: str = ""
    selector: LabelSelector = LabelSelector()


class ContainerRuntimeSpec(DefaultSpec):
    binary_path: str = ""
    worker_pool: ContainerRuntimeWorkerPool = ContainerRuntimeWorkerPool()


class ContainerRuntime(Resource):
    spec: ContainerRuntimeSpec = ContainerRuntimeSpec()


CONTAINER_RUNTIME = Kind(
    typed=ContainerRuntime,
    resource=CONTAINER_RUNTIMES,
    noun="container runtime",
    required=("spec.type", "spec.binaryPath", "spec.workerPool.name"),
    immutable=("spec.type", "spec.workerPool.name"),
)


class ControlPlaneSpec(DefaultSpec):
    infrastructure_provider_status: Raw = None
    region: str = ""
    secret_ref: SecretReference = SecretReference()


class ControlPlane(Resource):
    spec: ControlPlaneSpec = ControlPlaneSpec()


CONTROL_PLANE = Kind(
    typed=ControlPlane,
    resource=CONTROL_PLANES,
    noun="control plane",
    required=("spec.type", "spec.region", "spec.secretRef.name"),
    immutable=("spec.type", "spec.region"),
)


class ExtensionSpec(DefaultSpec):
    pass


class Extension(Resource):
    spec: ExtensionSpec = ExtensionSpec()


EXTENSION = Kind(
    typed=Extension, resource=EXTENSIONS, noun="extension", required=("spec.type",), immutable=("spec.type",)
)


class InfrastructureSpec(DefaultSpec):
    region: str = ""
    secret_ref: SecretReference = SecretReference()
    ssh_public_key: bytes | None = None


class Infrastructure(Resource):
    spec: InfrastructureSpec = InfrastructureSpec()


INFRASTRUCTURE = Kind(
    typed=Infrastructure,
    resource=INFRASTRUCTURES,
    noun="infrastructure",
    required=("spec.type", "spec.region", "spec.secretRef.name"),
    immutable=("spec.type", "spec.region"),
)
