"""Secrets, ConfigMaps and WorkloadIdentities, as far as bindings and Shoots may refer to some of them.

Most Secrets of a garden are no credentials of a provider. Next to nothing is kept of these. Labels state that bindings
of a kind refer to an object, not which; so one owner decides about them, from all existing bindings.
"""

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from gardener import keys
from gardener.keys import CREDENTIALS_BINDING_REFERENCE, SECRET_BINDING_REFERENCE
from kube.objects import Key, Object, finalizers, is_deleting, key, labels, metadata, text

T = TypeVar("T")
REFERENCE_LABELS = frozenset({SECRET_BINDING_REFERENCE, CREDENTIALS_BINDING_REFERENCE})
Bound: TypeAlias = Mapping[str, Sequence[T]]
"""Bindings that refer to an object, or their keys, by the label of their kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Cached metadata of a Secret, a ConfigMap, a WorkloadIdentity or a Quota."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that bindings manage."""
    finalizers: tuple[str, ...] = ()
    is_deleting: bool = False
    role: str | None = None
    """Role label; an object with one belongs to Gardener itself."""
    namespace: str = ""
    """Namespace, for objects that bindings refer to or have referred to, and for protected ones; else empty."""
    created: str = ""
    """Creation time, for objects that bindings refer to or have referred to; else empty."""

    @classmethod
    def of(cls, obj: Object) -> "Credentials":
        kept = {name: value for name, value in labels(obj).items() if _is_ours(name)}
        found, deleting, role = tuple(finalizers(obj)), is_deleting(obj), labels(obj).get(keys.ROLE)
        if not (kept or found or deleting):
            return _plain(role)
        were_referred_to = not REFERENCE_LABELS.isdisjoint(kept)
        is_found = were_referred_to or keys.REFERENCE_PROTECTION in found
        return cls(
            labels=kept,
            finalizers=found,
            is_deleting=deleting,
            role=role,
            namespace=key(obj).namespace if is_found else "",
            created=text(metadata(obj).get("creationTimestamp")) if were_referred_to else "",
        )

    @property
    def were_referred_to(self) -> bool:
        """Whether bindings refer to the object, or have referred to it."""
        return not REFERENCE_LABELS.isdisjoint(self.labels)

    @property
    def is_protected(self) -> bool:
        """Whether the object is protected for the Shoots of its namespace that refer to it."""
        return keys.REFERENCE_PROTECTION in self.finalizers

    def as_object(self, own: Key, version: int) -> Object:
        """Object with the fields needed to write its finalizers."""
        meta: Object = {
            "namespace": own.namespace,
            "name": own.name,
            "resourceVersion": str(version),
            **({"finalizers": list(self.finalizers)} if self.finalizers else {}),
            **({"deletionTimestamp": "set"} if self.is_deleting else {}),
        }
        return {"metadata": meta}


@functools.lru_cache(maxsize=64)
def _plain(role: str | None) -> Credentials:
    """Return a shared instance for all objects without other kept fields."""
    return Credentials(role=role)


def _is_ours(label: str) -> bool:
    return label in REFERENCE_LABELS or label.startswith(keys.PROVIDER_LABEL_PREFIX)


def reference_labels(bound: Bound[T]) -> set[str]:
    return {label for label, bindings in bound.items() if bindings}


def changes_of_labels(
    present: Mapping[str, str], wanted: Collection[str], *, owned: Collection[str]
) -> dict[str, str | None]:
    """Changes after which exactly the wanted ones of the owned labels are set; None removes a label."""
    added = {label: "true" for label in sorted(wanted) if present.get(label) != "true"}
    return {**added, **{label: None for label in sorted(owned) if label in present and label not in wanted}}
