from collections.abc import Iterator

from gardener import keys
from gardener.garden.domains import DOMAIN
from gardener.garden.resources import SHOOTS
from kube.objects import Object, annotations, labels, metadata
from kube.resources import SECRETS
from webhooks.garden.findings import Denial, Finding
from webhooks.garden.kind import Kind, foreign
from webhooks.garden.write import Write
from webhooks.registration import having

_STILL = "there are still shoots left in the system"


def is_internal_domain(secret: Object) -> bool:
    return labels(secret).get(keys.ROLE) == keys.ROLE_INTERNAL_DOMAIN


def only_one(write: Write) -> Iterator[Finding]:
    same_role = write.garden.by(SECRETS, "role", f"{write.namespace}/{keys.ROLE_INTERNAL_DOMAIN}")
    others = (secret for secret in same_role if metadata(secret).get("name") != write.name)
    if is_internal_domain(write.new) and any(True for _ in others):
        role = keys.ROLE_INTERNAL_DOMAIN
        yield Denial(f"there can be only one secret with the '{role}' secret role per namespace")


def domain_kept(write: Write) -> Iterator[Finding]:
    lost = is_internal_domain(write.old) and not is_internal_domain(write.new)
    changed = annotations(write.new).get(DOMAIN) != annotations(write.old).get(DOMAIN)
    if is_internal_domain(write.old) and (lost or changed) and _has_shoots(write):
        yield Denial(f"cannot change domain because {_STILL}")


def unused(write: Write) -> Iterator[Finding]:
    if is_internal_domain(write.new) and _has_shoots(write):
        yield Denial(f"cannot delete internal domain secret because {_STILL}")


def _has_shoots(write: Write) -> bool:
    return any(True for _ in write.garden.list(SHOOTS))


DOMAIN_SECRET = Kind(
    definition=foreign(SECRETS),
    objects=having(keys.ROLE, keys.ROLE_INTERNAL_DOMAIN),
    references=(only_one,),
    changes=(domain_kept,),
    deletions=(unused,),
    reads=(SECRETS, SHOOTS),
)
