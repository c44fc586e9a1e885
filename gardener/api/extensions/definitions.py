"""The kinds of extension resources, one description each; `DEFINITIONS` has all that a seed serves."""

from gardener.api.definition import Definition
from gardener.api.extensions.backup_bucket import BACKUP_BUCKET
from gardener.api.extensions.backup_entry import BACKUP_ENTRY
from gardener.api.extensions.bastion import BASTION
from gardener.api.extensions.cluster import CLUSTER
from gardener.api.extensions.container_runtime import CONTAINER_RUNTIME
from gardener.api.extensions.control_plane import CONTROL_PLANE
from gardener.api.extensions.dns_record import DNS_RECORD
from gardener.api.extensions.extension import EXTENSION
from gardener.api.extensions.infrastructure import INFRASTRUCTURE
from gardener.api.extensions.network import NETWORK
from gardener.api.extensions.operating_system_config import OPERATING_SYSTEM_CONFIG
from gardener.api.extensions.self_hosted_shoot_exposure import SELF_HOSTED_SHOOT_EXPOSURE
from gardener.api.extensions.worker import WORKER

DEFINITIONS: tuple[Definition, ...] = (
    *(BACKUP_BUCKET, BACKUP_ENTRY, BASTION, CLUSTER, CONTAINER_RUNTIME, CONTROL_PLANE, DNS_RECORD, EXTENSION),
    *(INFRASTRUCTURE, NETWORK, OPERATING_SYSTEM_CONFIG, SELF_HOSTED_SHOOT_EXPOSURE, WORKER),
)
