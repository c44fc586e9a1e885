"""Codes that the texts of providers lead to."""

import pytest

from gardener.error_codes import codes_in, merged, needs_user


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("AuthFailure: AWS was not able to validate the credentials", ["ERR_INFRA_UNAUTHENTICATED"]),
        ("googleapi: Error 403: caller lacks permission", ["ERR_INFRA_UNAUTHORIZED"]),
        ("VPCs: VpcLimitExceeded: the maximum number of VPCs", ["ERR_INFRA_QUOTA_EXCEEDED"]),
        ("quota 'CPUS' exceeded in region", ["ERR_INFRA_QUOTA_EXCEEDED"]),
        ("RequestLimitExceeded: Request limit exceeded.", ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]),
        ("429: Too Many Requests, quota exceeded for a minute", ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]),
        ("DependencyViolation: subnet is in use", ["ERR_INFRA_DEPENDENCIES"]),
        ("InsufficientInstanceCapacity in zone", ["ERR_INFRA_RESOURCES_DEPLETED"]),
        ("InvalidParameterValue: cidr", ["ERR_CONFIGURATION_PROBLEM"]),
        ("RetryableError: later", ["ERR_RETRYABLE_INFRA_DEPENDENCIES"]),
        (
            "PodDisruptionBudget x is misconfigured and requires zero voluntary evictions",
            ["ERR_RETRYABLE_CONFIGURATION_PROBLEM"],
        ),
        ("something else", []),
        ("", []),
    ],
)
def test_texts_of_providers_have_codes(text: str, codes: list[str]) -> None:
    assert codes_in(text) == codes


def test_some_codes_wait_for_a_person() -> None:
    assert needs_user(["ERR_RETRYABLE_INFRA_DEPENDENCIES", "ERR_INFRA_UNAUTHORIZED"])
    assert needs_user(["ERR_INFRA_RATE_LIMITS_EXCEEDED"])
    assert not needs_user(["ERR_INFRA_RESOURCES_DEPLETED", "ERR_CLEANUP_CLUSTER_RESOURCES"])
    assert not needs_user([])


def test_codes_stay_in_the_order_in_which_they_are_reported() -> None:
    assert merged(["b", "a"], [], ["a", "c"]) == ["b", "a", "c"]
