"""What is kept of Secrets and ConfigMaps, and which of them are protected for the Shoots of their namespace."""

from dataclasses import dataclass

from gardener import keys
from gardener.garden.shoots import is_abandoned, references
from kube.objects import Object, finalizers, is_deleting, key, labels


@dataclass(frozen=True, slots=True)
class Referable:
    """What is kept of a Secret or ConfigMap."""

    namespace: str
    finalizers: tuple[str, ...]
    role: str | None
    """What has one belongs to Gardener itself, and is left alone."""
    is_deleting: bool

    @classmethod
    def of(cls, obj: Object) -> "Referable":
        return cls(key(obj).namespace, tuple(finalizers(obj)), labels(obj).get(keys.ROLE), is_deleting(obj))

    @property
    def is_protected(self) -> bool:
        return keys.REFERENCE_PROTECTION in self.finalizers

    def as_object(self, name: str, version: int) -> Object:
        """As much of it as it takes to write its finalizers."""
        meta: Object = {
            "namespace": self.namespace,
            "name": name,
            "resourceVersion": str(version),
            "finalizers": list(self.finalizers),
        }
        return {"metadata": meta | ({"deletionTimestamp": "set"} if self.is_deleting else {})}


def concerns(shoot: Object) -> tuple[object, ...]:
    """What has to change for a Shoot to be looked at again."""
    return frozenset(references(shoot)), is_abandoned(shoot), keys.REFERENCE_PROTECTION in finalizers(shoot)
