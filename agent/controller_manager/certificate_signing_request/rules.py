"""What a gardenlet may have signed: a client certificate that makes it one of the seeds, and nothing else.

The signer puts into the certificate what was asked for, so what does not belong there is not approved, whatever it is.
Nothing is ever denied: many others use the same signer.

Any bootstrap token of gardenlets is good for a new Seed. Who asks in the name of a Seed that exists would become that
Seed, so the request must come from its gardenlet, or with credentials made for it: the bootstrap token whose id derives
from the name, or the ServiceAccount that is called after it. Gardenlets make both in this way for their ManagedSeeds.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import timedelta

from gardener import keys
from gardener.garden.domains import NAMESPACE
from kube import access_reviews
from kube.access_reviews import attributes
from kube.objects import Object, mapping, spec, text, texts
from kube.resources import CERTIFICATE_SIGNING_REQUESTS
from kube.signing_requests import Asked, SigningRequest

USAGES = frozenset({"client auth", "digital signature", "key encipherment"})
REASON = "AutoApproved"
MESSAGE = "Auto approving gardenlet client certificate after SubjectAccessReview."
_TOKENS = "system:bootstrap:"
_SERVICE_ACCOUNTS = f"system:serviceaccount:{NAMESPACE}:gardenlet-bootstrap-"
OLDEST = timedelta(hours=1)
"""Age at which nobody waits for an approval any more: by then gardenlets ask anew."""


def why_not(request: SigningRequest) -> str:
    """Why it is not the request of a gardenlet; empty: it is."""
    asked = request.asked
    if asked.organizations != (keys.SEEDS_GROUP,):
        return f'its organization is not "{keys.SEEDS_GROUP}" alone: {_listed(asked.organizations)}'
    if names := _alternative_names(asked):
        return f"it asks for more than a subject: {_listed(names)}"
    if sorted(request.usages) != sorted(USAGES):
        return f"its usages are not {_listed(sorted(USAGES))}: {_listed(request.usages)}"
    if len(asked.common_names) != 1 or not asked.common_names[0].startswith(keys.SEED_USER_PREFIX):
        return f'its common name does not begin with "{keys.SEED_USER_PREFIX}": {_listed(asked.common_names)}'
    if keys.SEEDS_GROUP in request.groups and asked.common_names[0] != request.username:
        return f"a gardenlet asks for the certificate of another one: {_listed(asked.common_names)}"
    return ""


def seed_of(request: SigningRequest) -> str:
    """The name of the Seed that the certificate is for."""
    return request.asked.common_names[0].removeprefix(keys.SEED_USER_PREFIX)


def is_made_for(seed: str, username: str) -> bool:
    """Whether a user can be nobody else than the gardenlet of this Seed."""
    return username in {
        f"{keys.SEED_USER_PREFIX}{seed}",
        f"{_SERVICE_ACCOUNTS}{seed}",
        f"{_TOKENS}{token_id(seed)}",
        f"{_TOKENS}{token_id(f'{seed}{NAMESPACE}--{seed}')}",
    }


def token_id(name: str) -> str:
    """Of the bootstrap token that is made for an object. Args: name: that of a Seed; for a ManagedSeed, more."""
    return hashlib.sha256(name.encode()).hexdigest()[:6]


def review(csr: Object) -> Object:
    """The SubjectAccessReview: whether whoever made the request may have it approved like this."""
    said = spec(csr)
    return access_reviews.review(
        attributes("create", CERTIFICATE_SIGNING_REQUESTS, subresource="seedclient"),
        user=text(said.get("username")),
        groups=texts(said.get("groups")),
        uid=text(said.get("uid")),
        extra=mapping(said.get("extra")),
    )


def _alternative_names(asked: Asked) -> list[str]:
    names = [f"DNS:{name}" for name in asked.dns_names] + [f"IP:{address}" for address in asked.ip_addresses]
    return sorted([*names, *asked.others])


def _listed(names: Iterable[str]) -> str:
    return json.dumps(list(names), ensure_ascii=False)
