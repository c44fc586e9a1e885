"""Domains of the garden, from Secrets of the namespace `garden` whose annotations name provider and domain.

And domains of Shoots that conflict with domains above and below: those that a provider has served.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from publicsuffixlist import PublicSuffixList

from kube.objects import Object, annotations, mapping, mappings, metadata, text
from kube.paths import at, mapping_at

NAMESPACE = "garden"
PROVIDER, DOMAIN, ZONE = "dns.gardener.cloud/provider", "dns.gardener.cloud/domain", "dns.gardener.cloud/zone"
PRIORITY = "dns.gardener.cloud/domain-default-priority"
DOMAIN_ANNOTATIONS = (PROVIDER, DOMAIN, ZONE, PRIORITY)
UNMANAGED = "unmanaged"
"""Provider type that stands for no DNS provider."""


@dataclass(frozen=True, slots=True)
class Domain:
    domain: str
    provider: str
    zone: str
    secret: str
    """Name of the Secret."""
    priority: int = 0


def domain_of(secret: Object) -> Domain | None:
    """Domain of a Secret; None if the annotations of provider or domain are missing."""
    reported = annotations(secret)
    if not reported.get(PROVIDER) or not reported.get(DOMAIN):
        return None
    return Domain(
        domain=reported[DOMAIN],
        provider=reported[PROVIDER],
        zone=reported.get(ZONE, ""),
        secret=text(metadata(secret).get("name")),
        priority=_priority(reported.get(PRIORITY, "")),
    )


def _priority(written: str) -> int:
    try:
        return int(written) if len(written) <= 10 else 0
    except ValueError:
        return 0


def is_below(domain: str, parent: str) -> bool:
    return domain.endswith(f".{parent}")


def domains(shoot: Object) -> Iterator[str]:
    """Its domain, if it has one; an index of caches, as the next one."""
    if domain := text(at(shoot, "spec", "dns", "domain")):
        yield domain


def parent_domains(shoot: Object) -> Iterator[str]:
    for domain in domains(shoot):
        yield from islice(domain_and_parents(domain), 1, None)


def domain_and_parents(domain: str) -> Iterator[str]:
    """The domain and its parents: `a.b.c`, `b.c`, `c`."""
    while domain:
        yield domain
        domain = domain.partition(".")[2]


# --- ownership of a domain


def is_public_suffix(domain: str) -> bool:
    """Whether anyone can register domains below it, as below `com` and `co.uk`; so it belongs to no single user."""
    return bool(_public_suffixes().is_public(domain))


@cache
def _public_suffixes() -> PublicSuffixList:
    """List of public suffixes, loaded on first use: it takes 40 ms and 1.4 MB."""
    return PublicSuffixList()


def primary_provider(shoot: Object) -> Object:
    """The primary provider, or else the first; empty if there is none."""
    found = mappings(mapping_at(shoot, "spec", "dns").get("providers"))
    return next((each for each in found if each.get("primary") is True), next(iter(found), {}))


def is_served(shoot: Object) -> bool:
    """Whether the provider of its domain has created DNS records: its creation would not have succeeded otherwise."""
    if primary_provider(shoot).get("type") == UNMANAGED:
        return False
    last = mapping(at(shoot, "status", "lastOperation"))
    kind = last.get("type")
    return kind in {"Reconcile", "Migrate", "Restore"} or (kind == "Create" and last.get("state") == "Succeeded")
