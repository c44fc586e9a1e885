"""Finalizers of objects: set before anything else is done for an object, removed when nothing is left to do."""

from kube.errors import KubeError, NotFound
from kube.objects import Object, finalizers, is_deleting, key, metadata
from kube.resources import Resource
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError


async def ensure_finalizer(client: Client, resource: Resource, obj: Object, finalizer: str) -> Object:
    """The object with the finalizer; written only if it lacks it. Raises ReconcileError."""
    if finalizer in finalizers(obj):
        return obj
    try:
        return await _write(client, resource, obj, [*finalizers(obj), finalizer])
    except KubeError as error:
        raise ReconcileError(f"failed to add finalizer: {error}") from error


async def remove_finalizer(client: Client, resource: Resource, obj: Object, finalizer: str) -> Object | None:
    """The object without the finalizer; None: it is gone. Raises ReconcileError."""
    if finalizer not in finalizers(obj):
        return obj
    try:
        written = await _write(client, resource, obj, [each for each in finalizers(obj) if each != finalizer])
    except NotFound:
        return None
    except KubeError as error:
        raise ReconcileError(f"failed to remove finalizer: {error}") from error
    return written if finalizers(written) or not is_deleting(written) else None


async def _write(client: Client, resource: Resource, obj: Object, wanted: list[str]) -> Object:
    # A merge patch replaces the list: the resourceVersion keeps what another client has added meanwhile.
    meta = {"resourceVersion": metadata(obj)["resourceVersion"], "finalizers": wanted or None}
    own = key(obj)
    return await client.patch(resource, own.name, {"metadata": meta}, namespace=own.namespace)
