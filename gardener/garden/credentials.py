"""Secrets and WorkloadIdentities, as far as it matters that bindings refer to some of them.

Most Secrets of a garden are nobody's credentials. Of these next to nothing is kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gardener import keys
from gardener.garden.bindings import REFERENCE_LABELS
from kube.objects import Object, finalizers, is_deleting, key, labels, metadata, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What is kept of the metadata of a Secret, a WorkloadIdentity or a Quota."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Those that bindings account for."""
    finalizers: tuple[str, ...] = ()
    is_deleting: bool = False
    namespace: str = ""
    """Of what bindings refer to, or have referred to; else empty, as the next ones are."""
    role: str = ""
    created: str = ""

    @classmethod
    def of(cls, obj: Object) -> "Credentials":
        kept = {name: value for name, value in labels(obj).items() if _is_ours(name)}
        found, deleting = tuple(finalizers(obj)), is_deleting(obj)
        if not (kept or found or deleting):
            return _PLAIN
        if REFERENCE_LABELS.isdisjoint(kept):
            return cls(labels=kept, finalizers=found, is_deleting=deleting)
        return cls(
            labels=kept,
            finalizers=found,
            is_deleting=deleting,
            namespace=key(obj).namespace,
            role=labels(obj).get(keys.ROLE) or "",
            created=text(metadata(obj).get("creationTimestamp")),
        )

    @property
    def were_referred_to(self) -> bool:
        return not REFERENCE_LABELS.isdisjoint(self.labels)


_PLAIN = Credentials()


def _is_ours(label: str) -> bool:
    return label in REFERENCE_LABELS or label.startswith(keys.PROVIDER_LABEL_PREFIX)
