from collections.abc import Iterator

from gardener import keys
from gardener.garden.domains import DOMAIN
from gardener.garden.resources import SHOOTS
from kube.objects import Object, annotations, labels, metadata
from kube.resources import SECRETS
from webhooks.garden.findings import Denial, Finding
from webhooks.garden.kind import Kind, foreign
from webhooks.garden.write import Limit, Write
from webhooks.registration import having


def is_internal_domain(secret: Object) -> bool:
    return labels(secret).get(keys.ROLE) == keys.ROLE_INTERNAL_DOMAIN


def only_one(write: Write) -> Iterator[Finding]:
    same_role = write.garden.by(SECRETS, "role", f"{write.namespace}/{keys.ROLE_INTERNAL_DOMAIN}")
    others = (secret for secret in same_role if metadata(secret).get("name") != write.name)
    if is_internal_domain(write.new) and any(True for _ in others):
        role = keys.ROLE_INTERNAL_DOMAIN
        yield Denial(f"there can be only one secret with the '{role}' secret role per namespace")


def domain_kept(write: Write) -> Iterator[Limit]:
    """For `limits`."""
    lost = not is_internal_domain(write.new)
    changed = annotations(write.new).get(DOMAIN) != annotations(write.old).get(DOMAIN)
    if is_internal_domain(write.old) and (lost or changed):
        yield _no_shoots("change domain")


def unused(write: Write) -> Iterator[Limit]:
    """For `deletion_limits`."""
    if is_internal_domain(write.new):
        yield _no_shoots("delete internal domain secret")


def _no_shoots(what: str) -> Limit:
    denial = f"cannot {what} because there are still shoots left in the system"
    return Limit(resource=SHOOTS, field_selectors=("",), most=0, denial=denial)


DOMAIN_SECRET = Kind(
    definition=foreign(SECRETS),
    objects=having(keys.ROLE, keys.ROLE_INTERNAL_DOMAIN),
    references=(only_one,),
    limits=(domain_kept,),
    deletion_limits=(unused,),
    reads=(SECRETS,),
)
