"""Base classes of actuators, one per kind of `extensions.gardener.cloud/v1alpha1`.

An extension subclasses those of its kinds, sets `type`, and overrides the methods that have something to do:

    class Greeter(Extension):
        type = "greeter"

        async def reconcile(self, obj):
            ...

Methods are idempotent, since each may be called again after it has ended at any point. They get the object with its
status: `status.lastOperation` has the operation, `status.state` the state that was saved on another seed. Errors and
waiting: `extension.errors`.
"""

from collections.abc import Sequence
from typing import ClassVar

from extension.rules import SHOOT_CLASS, class_of
from gardener import operations
from gardener.api import extensions
from kube.conditions import Condition
from kube.objects import Object, spec
from kube.resources import Resource
from kube.runtime.client import Client

_FINALIZERS = "extensions.gardener.cloud/"


class Actuator:
    """Actions for the objects of one kind and type.

    Args: seed: client of the seed.

    Attributes:
        resource: the kind.
        finalizer: keeps objects until they are deleted or migrated; by default that of Gardener's own library, so that
            a program on either library takes over objects of the other; for the kind Extension that has one per type.
        type: `spec.type` of the objects.
        classes: their `spec.class`.
    """

    resource: ClassVar[Resource]
    finalizer: ClassVar[str]
    type: ClassVar[str]
    classes: ClassVar[frozenset[str]] = frozenset({SHOOT_CLASS})

    def __init__(self, seed: Client) -> None:
        self.seed = seed

    def handles(self, obj: Object) -> bool:
        """Whether the object has the type and one of the classes; the others belong to other extensions."""
        return spec(obj).get("type") == self.type and class_of(obj) in self.classes

    async def reconcile(self, obj: Object, /) -> Object:
        """Create or update everything that the object describes; return fields of its status."""
        raise NotImplementedError

    async def restore(self, obj: Object, /) -> Object:
        """Do the same for an object that comes from another seed, with its `status.state`."""
        return await self.reconcile(obj)

    async def migrate(self, obj: Object, /) -> None:
        """Stop working on the object, which another seed continues with; delete nothing that it still needs."""

    async def delete(self, obj: Object, /) -> None:
        """Delete everything that the object describes."""

    async def health(self, obj: Object, /) -> Sequence[Condition]:
        """Return conditions of what the object describes; called regularly if a class overrides it."""
        raise NotImplementedError

    async def act(self, operation: str, obj: Object, *, waited: float) -> Object:  # noqa: ARG002 - for overrides
        """Carry out an operation by the method for it; override it to surround all of them.

        Args: waited: seconds since this process began the operation.
        """
        match operation:
            case operations.DELETE:
                await self.delete(obj)
            case operations.MIGRATE:
                await self.migrate(obj)
            case operations.RESTORE:
                return await self.restore(obj)
            case _:
                return await self.reconcile(obj)
        return {}


class BackupBucket(Actuator):
    resource, finalizer = extensions.BACKUP_BUCKETS, f"{_FINALIZERS}backupbucket"


class BackupEntry(Actuator):
    resource, finalizer = extensions.BACKUP_ENTRIES, f"{_FINALIZERS}backupentry"


class Bastion(Actuator):
    resource, finalizer = extensions.BASTIONS, f"{_FINALIZERS}bastion"


class ContainerRuntime(Actuator):
    resource, finalizer = extensions.CONTAINER_RUNTIMES, f"{_FINALIZERS}containerruntime"


class ControlPlane(Actuator):
    resource, finalizer = extensions.CONTROL_PLANES, f"{_FINALIZERS}controlplane"


class DNSRecord(Actuator):
    resource, finalizer = extensions.DNS_RECORDS, f"{_FINALIZERS}dnsrecord"


class Extension(Actuator):
    resource, finalizer = extensions.EXTENSIONS, f"{_FINALIZERS}extension"


class Infrastructure(Actuator):
    resource, finalizer = extensions.INFRASTRUCTURES, f"{_FINALIZERS}infrastructure"


class Network(Actuator):
    resource, finalizer = extensions.NETWORKS, f"{_FINALIZERS}network"


class OperatingSystemConfig(Actuator):
    resource, finalizer = extensions.OPERATING_SYSTEM_CONFIGS, f"{_FINALIZERS}operatingsystemconfigs"


class Worker(Actuator):
    resource, finalizer = extensions.WORKERS, f"{_FINALIZERS}worker"
