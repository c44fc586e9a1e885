"""Marks of every object: labels, and annotations with its origin."""

import sys
from collections.abc import Mapping
from typing import Any

from gardener import keys
from kube.objects import Object, group_of, mapping, mappings, metadata

_WORKLOADS = {
    *((group, kind) for group in ("apps", "extensions") for kind in ("Deployment", "DaemonSet", "ReplicaSet")),
    ("apps", "StatefulSet"),
    ("batch", "Job"),
    ("", "ReplicationController"),
}


def is_stamped(live: Object) -> bool:
    """Whether an agent, of any cluster, has written the origin annotation, by the fields that it manages.

    A value from another writer only shows that it may write the object.
    """
    return any(f"f:{keys.ORIGIN}" in annotated for annotated in map(_annotated, _written(live)))


def is_written(live: Object) -> bool:
    """Whether an agent has written the object, even if others have changed it since."""
    return bool(_written(live))


def _written(live: Object) -> list[Object]:
    """Fields of the object that an agent manages."""
    return [
        mapping(entry.get("fieldsV1"))
        for entry in mappings(metadata(live).get("managedFields"))
        if (entry.get("manager"), entry.get("operation")) == (keys.FIELD_MANAGER, "Update")
        and not entry.get("subresource")
    ]


def _annotated(fields: Object) -> Object:
    return mapping(mapping(fields.get("f:metadata")).get("f:annotations"))


class InjectionError(ValueError):
    """Labels can't be injected, since a value of another type is in the way."""


def injected_labels(spec_labels: Mapping[str, str] | None, *, managed_by: str) -> dict[str, str]:
    """`spec.injectLabels` with the managed-by label, which always wins."""
    return {**(spec_labels or {}), keys.MANAGED_BY: managed_by}


def inject_labels(
    obj: Object, labels: Mapping[str, str], *, only_workloads: bool = False, longest: int = sys.maxsize
) -> Object:
    """The manifest with these labels on the object, on its pod template and on its volume claim templates.

    With `only_workloads` the templates of unknown kinds are left alone.

    A `spec.template` that is no mapping is not a pod template and is left alone.

    Args: longest: maximum length of all injected labels together, in characters.

    Raises:
        InjectionError: names the path.
    """
    result = _labelled(obj, labels, "")
    spec = obj.get("spec")
    is_workload = (group_of(obj.get("apiVersion") or ""), obj.get("kind")) in _WORKLOADS
    if not isinstance(spec, dict) or (only_workloads and not is_workload):
        return result
    changed: Object = {}
    if isinstance(spec.get("template"), dict):
        changed["template"] = _labelled(spec["template"], labels, "spec.template.")
    claims = spec.get("volumeClaimTemplates")
    if claims is not None:
        if not isinstance(claims, list):
            raise InjectionError("spec.volumeClaimTemplates is not a list")
        if len(claims) * sum(len(name) + len(text) for name, text in labels.items()) > longest:
            raise InjectionError("too many spec.volumeClaimTemplates")
        changed["volumeClaimTemplates"] = [
            _labelled(_mapping(claim, path := f"spec.volumeClaimTemplates[{i}]"), labels, f"{path}.")
            for i, claim in enumerate(claims)
        ]
    return {**result, "spec": {**spec, **changed}} if changed else result


def _labelled(holder: Object, labels: Mapping[str, str], path: str) -> Object:
    meta = _mapping(holder.get("metadata"), f"{path}metadata")
    present = _mapping(meta.get("labels"), f"{path}metadata.labels")
    for name, value in present.items():
        if value is not None and not isinstance(value, str):
            raise InjectionError(f"{path}metadata.labels.{name} is not a string")
    return {**holder, "metadata": {**meta, "labels": {**present, **labels}}}


def _mapping(value: Any, path: str) -> Object:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InjectionError(f"{path} is not a mapping")
    return value
