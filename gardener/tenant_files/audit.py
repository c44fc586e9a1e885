"""Audit policies."""

from typing import Any

from gardener.tenant_files.reading import Fields, Versioned, decoded, demand_version, model, plain, written

KEY = "policy"
"""Key of the ConfigMap."""


class _Resources(Fields, frozen=True, kw_only=True):
    group: str | None = None
    resources: list[str] | None = None
    resourceNames: list[str] | None = None


class _Rule(Fields, frozen=True, kw_only=True):
    level: str
    users: list[str] | None = None
    userGroups: list[str] | None = None
    verbs: list[str] | None = None
    resources: list[_Resources] | None = None
    namespaces: list[str] | None = None
    nonResourceURLs: list[str] | None = None
    omitStages: list[str] | None = None
    omitManagedFields: bool | None = None


class _Policy(Versioned, frozen=True, kw_only=True):
    metadata: dict[str, Any] | None = None
    rules: list[_Rule]
    omitStages: list[str] | None = None
    omitManagedFields: bool = False


def audit_policy(content: bytes | str) -> str:
    """The policy, written from the allowed fields.

    Raises:
        UnusableFile: the policy is not allowed, or not readable.
    """
    found = model(decoded(content), _Policy)
    demand_version(found, "audit.k8s.io/v1", kinds=("Policy",))
    return written({field: value for field, value in plain(found).items() if field != "metadata"})
