"""Secrets of the namespace `garden` of which each Seed gets a copy: domains, and those of monitoring and alerts.

They have a role, but not that of the credentials of one cluster.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import orjson

from gardener import keys
from gardener.garden import seeds
from gardener.garden.domains import NAMESPACE, Domain, domain_of
from gardener.garden.seed_graph import SECRETS_OF_SHOOT
from kube.objects import Object, annotations, labels, mapping, metadata, text, uid

_OF_ONE_CLUSTER = sorted({each.removesuffix(".old") for each in SECRETS_OF_SHOOT})
"""Roles of Secrets that gardenlets write for the Shoots in `garden`; other Seeds must not get them."""
SELECTOR = f"{keys.ROLE},{keys.ROLE} notin ({','.join(_OF_ONE_CLUSTER)})"


@dataclass(frozen=True, slots=True)
class GardenSecret:
    """Cached fields of a garden Secret or of a copy; without content for copies."""

    namespace: str
    name: str
    uid: str
    role: str
    type: str
    digest: bytes
    """Digest of all copied fields."""
    domain: Domain | None
    """Domain of the Secret, if any; independent of its role."""
    content: Object | None = field(repr=False, compare=False)
    """Copied fields; None if this is a copy."""

    @classmethod
    def of(cls, secret: Object) -> "GardenSecret | None":
        """None if the Secret is in another namespace."""
        namespace = text(metadata(secret).get("namespace"))
        if namespace != NAMESPACE and not seeds.seed_of(namespace):
            return None
        content = copied(secret)
        return cls(
            namespace=namespace,
            name=text(metadata(secret).get("name")),
            uid=uid(secret),
            role=labels(secret).get(keys.ROLE, ""),
            type=text(content["type"]),
            digest=hashlib.blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).digest(),
            domain=domain_of(secret),
            content=content if namespace == NAMESPACE else None,
        )


def copied(secret: Object) -> dict[str, Any]:
    """Fields that a copy takes over."""
    return {
        "labels": labels(secret),
        "annotations": annotations(secret),
        "type": text(secret.get("type")) or "Opaque",
        "data": mapping(secret.get("data")),
        **({"immutable": True} if secret.get("immutable") is True else {}),
    }
