"""Replacement of an object after the API server has refused its update as invalid: the next pass creates it again.

The manifest permits that by an annotation, or it is an immutable ConfigMap or Secret, for which there is no other way.

An object that could not be created again must not be deleted because of a typo, so a dry run comes first.
"""

from gardener import keys
from gardener.managed_resource.remedies import is_replaceable
from kube.errors import Invalid
from kube.objects import Object, annotations, is_truthy

_IMMUTABLE = "field is immutable when `immutable` is set"
_POLICIES = ("Background", "Foreground", "Orphan")


class PropagationPolicyError(ValueError):
    """The annotation is not a propagation policy, so nothing is deleted."""


def may_be_replaced(merged: Object, error: Invalid) -> bool:
    """Whether the object may be deleted after its update was refused with this error."""
    if is_truthy(annotations(merged).get(keys.DELETE_ON_INVALID_UPDATE)):
        return is_replaceable(str(error))
    return (
        merged.get("apiVersion") == "v1"
        and merged.get("kind") in {"ConfigMap", "Secret"}
        and any(
            cause.get("reason") == "FieldValueForbidden" and _IMMUTABLE in (cause.get("message") or "")
            for cause in error.causes
        )
    )


def propagation_policy(merged: Object, *, resource: str) -> str | None:
    """Return the propagation policy of the annotation; None leaves it to the API server.

    Raises:
        PropagationPolicyError: the annotation is invalid.
    """
    policy = annotations(merged).get(keys.DELETION_PROPAGATION_ON_INVALID_UPDATE)
    if policy is not None and policy not in _POLICIES:
        raise PropagationPolicyError(
            f'invalid deletion propagation policy on object {resource}: "{policy}" is invalid, '
            f"supported values: [{' '.join(_POLICIES)}]"
        )
    return policy


def as_if_gone(manifest: Object, live: Object) -> Object:
    """Return the manifest without values allocated to a live Service: no other one can get these before it is gone."""
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("v1", "Service"):
        return manifest
    old, spec = live.get("spec") or {}, manifest.get("spec") or {}
    addresses = {field: old.get(field) for field in ("clusterIP", "clusterIPs") if old.get("clusterIP") != "None"}
    ports = {"healthCheckNodePort": old.get("healthCheckNodePort")}
    used = [(port or {}).get("nodePort") for port in old.get("ports") or []]
    wanted = [
        {field: value for field, value in (port or {}).items() if field != "nodePort" or value not in used}
        for port in spec.get("ports") or []
    ]
    allotted = [*addresses.items(), *ports.items()]
    return {**manifest, "spec": {**dict(each for each in spec.items() if each not in allotted), "ports": wanted}}


def deleted_text(resource: str, error: str) -> str:
    """Return the report of a success: the pass ends as failed, and the next one creates the object."""
    return (
        f"deleted object \"{resource}\" because of 'invalid' update error, and 'delete-on-invalid-update' "
        f"annotation on object or the resource is an immutable ConfigMap/Secret: {error}"
    )


def not_deleted_text(resource: str, error: str) -> str:
    return f"error deleting object \"{resource}\" after 'invalid' update error: {error}"


def not_creatable_text(resource: str, refused: str, error: str) -> str:
    return (
        f'error during apply of object "{resource}": {refused}; it was not deleted, '
        f"since the API server would reject its recreation: {error}"
    )
