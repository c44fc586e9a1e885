"""When the API server refuses an update as invalid: some objects may be deleted, and the next pass makes them anew.

Either the manifest allows it by an annotation, or it is an immutable ConfigMap or Secret, for which there is no other
way.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agent.managed_resource import keys
from kube.objects import Object, annotations, is_truthy

_IMMUTABLE = "field is immutable when `immutable` is set"
_POLICIES = ("Background", "Foreground", "Orphan")


class PropagationPolicyError(ValueError):
    """The annotation names no propagation policy, so nothing is deleted."""


def may_be_replaced(merged: Object, causes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the object may be deleted after its update was refused for these causes."""
    if is_truthy(annotations(merged).get(keys.DELETE_ON_INVALID_UPDATE)):
        return True
    return (
        merged.get("apiVersion") == "v1"
        and merged.get("kind") in {"ConfigMap", "Secret"}
        and any(
            cause.get("reason") == "FieldValueForbidden" and _IMMUTABLE in (cause.get("message") or "")
            for cause in causes
        )
    )


def propagation_policy(merged: Object, *, resource: str) -> str | None:
    """What the annotation says of dependents; None leaves it to the API server. Raises PropagationPolicyError."""
    policy = annotations(merged).get(keys.DELETION_PROPAGATION_ON_INVALID_UPDATE)
    if policy is not None and policy not in _POLICIES:
        raise PropagationPolicyError(
            f'invalid deletion propagation policy on object {resource}: "{policy}" is invalid, '
            f"supported values: [{' '.join(_POLICIES)}]"
        )
    return policy


def deleted_text(resource: str, error: str) -> str:
    """Reported though all went well: the pass ends as failed, and the next one creates the object."""
    return (
        f"deleted object \"{resource}\" because of 'invalid' update error, and 'delete-on-invalid-update' "
        f"annotation on object or the resource is an immutable ConfigMap/Secret: {error}"
    )


def not_deleted_text(resource: str, error: str) -> str:
    return f"error deleting object \"{resource}\" after 'invalid' update error: {error}"
