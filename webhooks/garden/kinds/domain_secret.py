"""Secrets with the domains of Shoots.

The domain of Shoots' control planes: for all Shoots in the namespace `garden`, and copied for each Seed.
"""

from collections.abc import Iterator, Sequence

from gardener import keys
from gardener.api.garden import SEEDS, SHOOTS
from gardener.garden.domains import DOMAIN, NAMESPACE
from gardener.garden.seeds import seed_of
from gardener.garden.shoots import selectors_of_users
from kube.objects import Key, Object, annotations, is_deleting, labels, metadata
from kube.resources import NAMESPACES, SECRETS
from webhooks.garden.common.descriptor import Kind, foreign
from webhooks.garden.common.domains import domain_roles
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Limit, Write
from webhooks.rules.registration import having


def is_internal_domain(secret: Object) -> bool:
    return labels(secret).get(keys.ROLE) == keys.ROLE_INTERNAL_DOMAIN


def only_one(write: Write) -> Iterator[Finding]:
    """Refuse a second internal domain in a namespace."""
    same_role = write.garden.by(SECRETS, domain_roles, Key(write.namespace, keys.ROLE_INTERNAL_DOMAIN))
    others = (secret for secret in same_role if metadata(secret).get("name") != write.name)
    if _shoots(write) and is_internal_domain(write.new) and any(True for _ in others):
        role = keys.ROLE_INTERNAL_DOMAIN
        yield Denial(f"there can be only one secret with the '{role}' secret role per namespace")


def domain_kept(write: Write) -> Iterator[Limit]:
    """Refuse a change of the domain while there are Shoots."""
    lost = not is_internal_domain(write.new)
    changed = annotations(write.new).get(DOMAIN) != annotations(write.old).get(DOMAIN)
    if is_internal_domain(write.old) and (lost or changed):
        yield from _no_shoots(write, "change domain")


def unused(write: Write) -> Iterator[Limit]:
    """Rule for `deletion_limits`."""
    if is_internal_domain(write.new):
        yield from _no_shoots(write, "delete internal domain secret")


def _no_shoots(write: Write, what: str) -> Iterator[Limit]:
    if selectors := _shoots(write):
        denial = f"cannot {what} because there are still shoots left in the system"
        yield Limit(resource=SHOOTS, field_selectors=selectors, most=0, denial=denial)


def _shoots(write: Write) -> Sequence[str]:
    """Field selectors of the Shoots with this domain: all, or those of a Seed. Empty for any other Secret."""
    if write.namespace == NAMESPACE:
        return ("",)
    seed = seed_of(write.namespace)
    namespace = write.garden.get(NAMESPACES, write.namespace)
    if not seed or namespace is None or is_deleting(namespace) or write.garden.get(SEEDS, seed) is None:
        # Remains of a Seed are removed with its namespace, even if the next one of that name has Shoots.
        return ()
    return selectors_of_users(seed)


DOMAIN_SECRET = Kind(
    definition=foreign(SECRETS),
    objects=having(keys.ROLE, keys.ROLE_INTERNAL_DOMAIN),
    references=(only_one,),
    limits=(domain_kept,),
    deletion_limits=(unused,),
    reads=(NAMESPACES, SECRETS, SEEDS),
)
