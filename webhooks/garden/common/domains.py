"""The domains of the garden, out of their Secrets.

Reads `SECRETS`.
"""

from gardener import keys
from gardener.garden.domains import NAMESPACE, Domain, domain_of
from kube.resources import SECRETS
from webhooks.garden.write import Garden


def default_domains(garden: Garden) -> list[Domain]:
    """Those of highest priority first."""
    return sorted(_domains(garden, keys.ROLE_DEFAULT_DOMAIN), key=lambda each: (-each.priority, each.secret))


def internal_domain(garden: Garden) -> Domain | None:
    return next(iter(_domains(garden, keys.ROLE_INTERNAL_DOMAIN)), None)


def _domains(garden: Garden, role: str) -> list[Domain]:
    secrets = garden.by(SECRETS, "role", f"{NAMESPACE}/{role}")
    return [domain for secret in secrets if (domain := domain_of(secret)) is not None]
