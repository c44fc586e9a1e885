"""DNS providers and credentials of a Shoot's domains.

The internal domain is the seed's; every Shoot has a name in it. The external one is the Shoot's own: below a default
domain of the garden, or served by a provider that it names. It may have none, or one that its users serve themselves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from components.dns_records import external_host, internal_host
from gardener import keys
from gardener.error_codes import CONFIGURATION_PROBLEM
from gardener.garden.domains import UNMANAGED, Domain, domain_of, is_below, primary_provider
from kube.objects import Object, labels, mapping, spec, string_map, text
from kube.paths import at
from kube.resources import SECRETS


class DomainError(ValueError):
    """The provider or the credentials of a domain are unclear."""

    codes = (CONFIGURATION_PROBLEM,)


@dataclass(frozen=True, slots=True)
class Served:
    """A name of the API server, with provider and credentials of its record.

    Attributes:
        credentials: `data` of a Secret.
    """

    host: str
    provider: str
    zone: str
    credentials: Mapping[str, str] = field(repr=False)


def internal(secrets: Iterable[Object], *, shoot: str, project: str) -> Served:
    """Name below the internal domain of the seed.

    Args:
        secrets: of the Seed's namespace in the garden.
        shoot: its name.
        project: of the Shoot.

    Raises: DomainError
    """
    secret = next((each for each in secrets if labels(each).get(keys.ROLE) == keys.ROLE_INTERNAL_DOMAIN), None)
    if secret is None:
        raise DomainError("need an internal domain secret but found none")
    found = _domain(secret)
    return _served(internal_host(shoot, project, found.domain), found, secret)


def external(shoot: Object, secrets: Iterable[Object]) -> Served | None:
    """Name in the Shoot's own domain, if that is below a default domain; else None. Raises DomainError."""
    domain = own_domain(shoot)
    for each in secrets:
        if labels(each).get(keys.ROLE) == keys.ROLE_DEFAULT_DOMAIN and is_below(domain, _domain(each).domain):
            return _served(external_host(domain), _domain(each), each)
    return None


def own_domain(shoot: Object) -> str:
    """Domain in which the gardenlet creates records; empty if there is none."""
    if primary_provider(shoot).get("type") == UNMANAGED:
        return ""
    return text(at(spec(shoot), "dns", "domain"))


def credentials_of(shoot: Object) -> str:
    """Name of the Secret with the credentials of the Shoot's own provider. Raises DomainError."""
    provider = primary_provider(shoot)
    reference = mapping(provider.get("credentialsRef"))
    if reference and reference.get("kind") != SECRETS.kind:
        raise DomainError(
            f"credentials for DNS of the kind {reference.get('kind')} are not supported; refer to a Secret"
        )
    name = text(reference.get("name")) or text(provider.get("secretName"))
    if not text(provider.get("type")) or not name:
        raise DomainError(
            f"no DNS provider for domain {own_domain(shoot)}; set type and secretName of the primary provider in "
            "spec.dns.providers"
        )
    return name


def own(shoot: Object, secret: Object) -> Served:
    """Name in the Shoot's own domain, served by its own provider."""
    zones = mapping(primary_provider(shoot).get("zones")).get("include") or []
    provider, credentials = text(primary_provider(shoot).get("type")), string_map(secret.get("data"))
    return Served(external_host(own_domain(shoot)), provider, text(zones[0]) if len(zones) == 1 else "", credentials)


def _domain(secret: Object) -> Domain:
    found = domain_of(secret)
    if found is None:
        name = mapping(secret.get("metadata")).get("name")
        raise DomainError(f"Secret {name} of a domain lacks the annotations with the domain and its provider; add them")
    return found


def _served(host: str, by: Domain, secret: Object) -> Served:
    return Served(host, by.provider, by.zone, string_map(secret.get("data")))
