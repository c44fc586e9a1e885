"""References in `status.resources`: one for each object that a ManagedResource manages.

An object key is independent of the version, so a move from `v1beta1` to `v1` keeps the object. In texts
an object is named by its resource string, which has the apiVersion in place of the group.
"""

import hashlib
from collections.abc import Iterable, Mapping

from kube.objects import (
    DEFAULT_NAMESPACE,
    Object,
    annotations,
    group_of,
    labels,
    mappings,
    metadata,
    object_key,
    spec,
    text,
)

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""A copy of the whole object, including the data of a Secret: unfit for the status, which others may read."""


def secret_names(managed_resource: Object) -> list[str]:
    """Names in the order of `spec.secretRefs`."""
    return [text(reference.get("name")) for reference in mappings(spec(managed_resource).get("secretRefs"))]


def listed_in(managed_resource: Object) -> list[Object]:
    """The references of managed objects, those of an unfinished pass at the end."""
    status = managed_resource.get("status") or {}
    references = {key_of_reference(found): found for found in status.get("resources") or []}
    for found in status.get("pendingResources") or []:
        references.setdefault(key_of_reference(found), found)
    return list(references.values())


def key_of(obj: Object) -> str:
    """The object key of a manifest or a live object."""
    return object_key(group_of(_api_version(obj)), _kind(obj), *_namespace_and_name(metadata(obj)))


def key_of_reference(reference: Mapping[str, str]) -> str:
    return object_key(
        group_of(reference.get("apiVersion") or ""), reference.get("kind") or "", *_namespace_and_name(reference)
    )


def resource_string(obj: Object) -> str:
    """Name of an object in messages: `apps/v1/Deployment/ns/name`."""
    return object_key(_api_version(obj), _kind(obj), *_namespace_and_name(metadata(obj)))


def resource_string_of_reference(reference: Mapping[str, str]) -> str:
    return object_key(reference.get("apiVersion") or "", reference.get("kind") or "", *_namespace_and_name(reference))


def _api_version(obj: Object) -> str:
    return obj.get("apiVersion") or ""


def _kind(obj: Object) -> str:
    return obj.get("kind") or ""


def _namespace_and_name(named: Mapping[str, str]) -> tuple[str, str]:
    return named.get("namespace") or "", named.get("name") or ""


def in_its_namespace(obj: Object, *, namespaced: bool | None) -> Object:
    """The object with the namespace that it will have; a guess for an unknown kind (None)."""
    meta = metadata(obj)
    has = "namespace" in meta
    if namespaced is None:
        namespaced = obj.get("kind") != "Namespace" or bool(meta.get("namespace"))
    if namespaced and not meta.get("namespace"):
        return {**obj, "metadata": {**meta, "namespace": DEFAULT_NAMESPACE}}
    if not namespaced and has:
        return {**obj, "metadata": {name: value for name, value in meta.items() if name != "namespace"}}
    return obj


def reference_of(obj: Object, *, injected_labels: Mapping[str, str]) -> Object:
    """The entry in `status.resources` for a manifest; `injected_labels` include the managed-by label."""
    namespace, name = _namespace_and_name(metadata(obj))
    own = labels(obj)
    fields = {
        "apiVersion": _api_version(obj),
        "kind": _kind(obj),
        "name": name,
        "namespace": namespace,
        # Most objects have none of their own; injected ones are equal for all objects, and kept once.
        "labels": {**own, **injected_labels} if own else injected_labels,
        "annotations": {name: text for name, text in annotations(obj).items() if name != _LAST_APPLIED},
    }
    return {name: value for name, value in fields.items() if value}


def sorted_references(references: Iterable[Object]) -> list[Object]:
    """References sorted bytewise by object key; equal ones keep their order."""
    return sorted(references, key=key_of_reference)


def secrets_checksum(contents: Iterable[bytes]) -> str:
    """`status.secretsDataChecksum`: over the raw value of its data key once more for each applied object.

    An instance of the original must find its own checksum after a handover, or it starts from scratch.
    """
    digest = hashlib.sha256(usedforsecurity=False)
    for content in contents:
        digest.update(content)
    return digest.hexdigest()
