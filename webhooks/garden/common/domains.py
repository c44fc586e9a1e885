"""Domains of the garden, from their Secrets.

Reads `SECRETS`.
"""

from collections.abc import Iterator, Sequence

from gardener import keys
from gardener.garden.domains import NAMESPACE, Domain, domain_of
from kube.objects import Key, Object, key, labels
from kube.resources import SECRETS
from webhooks.garden.common.write import GardenLister


def default_domains(garden: GardenLister) -> Sequence[Domain]:
    """Default domains, highest priority first."""
    return sorted(_domains(garden, keys.ROLE_DEFAULT_DOMAIN), key=lambda each: (-each.priority, each.secret))


def internal_domain(garden: GardenLister) -> Domain | None:
    return next(_domains(garden, keys.ROLE_INTERNAL_DOMAIN), None)


def domain_roles(secret: Object) -> Iterator[Key]:
    """Index function: namespace of a Secret with a domain, and its role."""
    if (role := labels(secret).get(keys.ROLE)) in {keys.ROLE_DEFAULT_DOMAIN, keys.ROLE_INTERNAL_DOMAIN}:
        yield Key(key(secret).namespace, role)


def _domains(garden: GardenLister, role: str) -> Iterator[Domain]:
    secrets = garden.by(SECRETS, domain_roles, Key(NAMESPACE, role))
    return (domain for secret in secrets if (domain := domain_of(secret)) is not None)
