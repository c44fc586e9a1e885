"""Domains of the garden: Secrets of the namespace `garden` that say by annotations who serves a domain."""

from collections.abc import Iterator
from dataclasses import dataclass

from kube.objects import Object, annotations, metadata, text

NAMESPACE = "garden"
PROVIDER, DOMAIN, ZONE = "dns.gardener.cloud/provider", "dns.gardener.cloud/domain", "dns.gardener.cloud/zone"
PRIORITY = "dns.gardener.cloud/domain-default-priority"
DOMAIN_ANNOTATIONS = (PROVIDER, DOMAIN, ZONE, PRIORITY)
UNMANAGED = "unmanaged"
"""The type of a provider that says that there is none."""


@dataclass(frozen=True, slots=True)
class Domain:
    domain: str
    provider: str
    zone: str
    secret: str
    """Name of the Secret."""
    priority: int = 0


def domain_of(secret: Object) -> Domain | None:
    """None: the annotations of provider or domain are missing."""
    said = annotations(secret)
    if not said.get(PROVIDER) or not said.get(DOMAIN):
        return None
    return Domain(
        domain=said[DOMAIN],
        provider=said[PROVIDER],
        zone=said.get(ZONE, ""),
        secret=text(metadata(secret).get("name")),
        priority=_priority(said.get(PRIORITY, "")),
    )


def _priority(written: str) -> int:
    try:
        return int(written) if len(written) <= 10 else 0
    except ValueError:
        return 0


def is_below(domain: str, parent: str) -> bool:
    return domain.endswith(f".{parent}")


def domain_and_parents(domain: str) -> Iterator[str]:
    """`a.b.c`, `b.c`, `c`."""
    while domain:
        yield domain
        domain = domain.partition(".")[2]
