"""Codes of errors: the kind of failure that a text reports, and whether its user has to act.

An extension that knows a code reports it. If only the text of a provider is known, the text is matched; errors of
Gardener's own requests to API servers are never matched, since a passing 'not found' there is no fault of a user.
"""

import re
from collections.abc import Collection, Iterable
from itertools import chain

INFRA_UNAUTHENTICATED = "ERR_INFRA_UNAUTHENTICATED"
INFRA_UNAUTHORIZED = "ERR_INFRA_UNAUTHORIZED"
INFRA_DEPENDENCIES = "ERR_INFRA_DEPENDENCIES"
INFRA_QUOTA_EXCEEDED = "ERR_INFRA_QUOTA_EXCEEDED"
INFRA_RATE_LIMITS_EXCEEDED = "ERR_INFRA_RATE_LIMITS_EXCEEDED"
INFRA_RESOURCES_DEPLETED = "ERR_INFRA_RESOURCES_DEPLETED"
RETRYABLE_INFRA_DEPENDENCIES = "ERR_RETRYABLE_INFRA_DEPENDENCIES"
CONFIGURATION_PROBLEM = "ERR_CONFIGURATION_PROBLEM"
RETRYABLE_CONFIGURATION_PROBLEM = "ERR_RETRYABLE_CONFIGURATION_PROBLEM"
CLEANUP_CLUSTER_RESOURCES = "ERR_CLEANUP_CLUSTER_RESOURCES"
PROBLEMATIC_WEBHOOK = "ERR_PROBLEMATIC_WEBHOOK"

NOT_RETRIED = frozenset(
    {
        INFRA_UNAUTHENTICATED,
        INFRA_UNAUTHORIZED,
        INFRA_DEPENDENCIES,
        INFRA_QUOTA_EXCEEDED,
        INFRA_RATE_LIMITS_EXCEEDED,
        CONFIGURATION_PROBLEM,
        PROBLEMATIC_WEBHOOK,
    }
)
"""Codes of failures that are final until the user, or the owner of the account, has acted."""

_REMEDIES = {
    INFRA_UNAUTHENTICATED: "correct the credentials of the provider, and request a retry",
    INFRA_UNAUTHORIZED: "give the account of the provider the rights in the error, and request a retry",
    INFRA_DEPENDENCIES: "delete the objects that use the resources in the error, and request a retry",
    INFRA_QUOTA_EXCEEDED: "raise the quota of the account, or use less of it, and request a retry",
    INFRA_RATE_LIMITS_EXCEEDED: "wait: the account sent too many requests; the controller manager requests a retry",
    CONFIGURATION_PROBLEM: "correct the field or object in the error",
    PROBLEMATIC_WEBHOOK: "correct or remove the webhook in the error",
    INFRA_RESOURCES_DEPLETED: "wait for the provider, or choose another machine type or zone; it is tried again",
    CLEANUP_CLUSTER_RESOURCES: "remove the objects in the error from the cluster; it is tried again",
    RETRYABLE_CONFIGURATION_PROBLEM: "correct the object in the error; it is tried again",
}
_NO_CODE = "wait: it is tried again with a growing delay; if the error persists, correct its cause"


def remedy(codes: Iterable[str]) -> str:
    """Advice for people on an error with these codes."""
    found = [_REMEDIES[each] for each in codes if each in _REMEDIES]
    return "; ".join(dict.fromkeys(found)) or _NO_CODE


_SAID = {
    INFRA_UNAUTHENTICATED: (
        "AuthFailure",
        "Authentication failed",
        "cannot fetch token",
        "InvalidAccessKeyId",
        "InvalidAuthenticationTokenTenant",
        "InvalidSecretAccessKey",
        "InvalidSubscriptionId",
        "invalid_client",
    ),
    INFRA_UNAUTHORIZED: (
        "AccessDenied",
        "AuthorizationFailed",
        "Error 403",
        "InvalidClientTokenId",
        "invalid_grant",
        "no active subscriptions",
        "not authorized",
        "OperationNotAllowed",
        "SERVICE_ACCOUNT_ACCESS_DENIED",
        "SignatureDoesNotMatch",
        "Unauthorized",
    ),
    INFRA_RATE_LIMITS_EXCEEDED: ("RequestLimitExceeded", "Throttling", "Too many requests"),
    INFRA_QUOTA_EXCEEDED: (
        "exceeded quota",
        "LimitExceeded",
        "Maximum number of ports exceeded",
        "Quota has been met",
        "QUOTA_EXCEEDED",
        "quota .*exceeded",
        "Quotas",
        "VolumeSizeExceedsAvailableQuota",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    ),
    INFRA_DEPENDENCIES: (
        "Access Not Configured",
        "accessNotConfigured",
        "DeleteConflict",
        "DependencyViolation",
        "inactive billing state",
        "InsufficientFreeAddressesInSubnet",
        "InvalidCidrBlock",
        "OptInRequired",
        "PendingVerification",
        "ReadOnlyDisabledSubscription",
    ),
    RETRYABLE_INFRA_DEPENDENCIES: ("RetryableError",),
    INFRA_RESOURCES_DEPLETED: (
        "InsufficientInstanceCapacity",
        "not available in the current hardware cluster",
        "out of stock",
        "SkuNotAvailable",
        "ZonalAllocationFailed",
    ),
    CONFIGURATION_PROBLEM: (
        "InvalidParameter",
        "InvalidParameterValue",
        "not supported in your requested Availability Zone",
    ),
    RETRYABLE_CONFIGURATION_PROBLEM: (
        "is misconfigured and requires zero voluntary evictions",
        "SDK.CanNotResolveEndpoint",
        "The requested configuration is currently not supported",
    ),
}
"""Texts of providers by code, matched in any case of letters."""

_PATTERNS = {code: re.compile("|".join(texts), re.IGNORECASE) for code, texts in _SAID.items()}


def codes_in(text: str) -> list[str]:
    """The codes of a text from an extension, a Machine, a Node or an Etcd, in alphabetical order.

    A rate limit does not count as a resource limit: the account only needs a pause.
    """
    found = {code for code, pattern in _PATTERNS.items() if pattern.search(text)}
    if INFRA_RATE_LIMITS_EXCEEDED in found:
        found.discard(INFRA_QUOTA_EXCEEDED)
    return sorted(found)


def needs_user(codes: Collection[str]) -> bool:
    """Whether retries fail until the user acts."""
    return not NOT_RETRIED.isdisjoint(codes)


def merged(*codes: Iterable[str]) -> list[str]:
    """All codes, once each, in the given order."""
    return list(dict.fromkeys(chain(*codes)))
