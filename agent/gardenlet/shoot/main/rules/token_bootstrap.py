"""Whether the resource manager of a Shoot needs a certificate to get its first token: pure."""

from datetime import datetime

from gardener import keys
from gardener.conditions import RESOURCES_APPLIED
from kube.clock import time_or_none
from kube.objects import Object, annotations, condition, text

USER, GROUP = "gardener.cloud:system:gardener-resource-manager", "system:masters"
"""Subject of the certificate."""
_REFUSED = (
    "Unauthorized",
    'forbidden: User "system:serviceaccount:kube-system:gardener-resource-manager" cannot',
)


def is_needed(access: Object | None, managed_resource: Object | None, *, now: datetime) -> bool:
    """Args:
    access: the Secret with its token.
    managed_resource: the ManagedResource that grants its rights in the Shoot.
    now: of the seed.
    """
    renewal = time_or_none(annotations(access or {}).get(keys.TOKEN_RENEW_TIMESTAMP))
    if renewal is None or renewal < now or managed_resource is None:
        return True
    reported = text((condition(managed_resource, RESOURCES_APPLIED) or {}).get("message"))
    return any(each in reported for each in _REFUSED)


def no_token(access: Object | None) -> str:
    """Reason for waiting while there is no token; empty if there is one."""
    return "" if annotations(access or {}).get(keys.TOKEN_RENEW_TIMESTAMP) else "token not yet generated"
