"""Finalizers of objects: set before any other work for an object, removed when no work is left."""

from kube.errors import Conflict, Invalid, KubeError, NotFound
from kube.objects import Object, finalizers, is_deleting, key, metadata, uid
from kube.resources import Resource
from kube.runtime.client import JSON_PATCH, Client
from kube.runtime.controller import ReconcileError

_ATTEMPTS = 5


async def ensure_finalizer(client: Client, resource: Resource, obj: Object, finalizer: str) -> Object:
    """Add the finalizer to the object if it lacks it. Raises ReconcileError."""
    if finalizer in finalizers(obj):
        return obj
    try:
        return await _write(client, resource, obj, [*finalizers(obj), finalizer])
    except KubeError as error:
        raise ReconcileError(f"failed to add finalizer: {error}") from error


async def remove_finalizer(client: Client, resource: Resource, obj: Object, finalizer: str) -> Object | None:
    """Remove the finalizer; return the object, None if it is gone. Raises ReconcileError."""
    if finalizer not in finalizers(obj):
        return obj
    try:
        written = await _write(client, resource, obj, [each for each in finalizers(obj) if each != finalizer])
    except NotFound:
        return None
    except KubeError as error:
        raise ReconcileError(f"failed to remove finalizer: {error}") from error
    return written if finalizers(written) or not is_deleting(written) else None


async def release(client: Client, resource: Resource, obj: Object, finalizer: str) -> None:
    """Remove the finalizer of an object that is being deleted, despite concurrent writers. Raises ReconcileError."""
    own = key(obj)
    try:
        for _ in range(_ATTEMPTS - 1):
            try:
                return await _release_once(client, resource, obj, finalizer)
            except (Invalid, Conflict):  # other finalizers have come or gone
                live = await client.get(resource, own)
                if uid(live) != uid(obj):
                    return None
                obj = live
        return await _release_once(client, resource, obj, finalizer)
    except NotFound:
        return None
    except KubeError as error:
        raise ReconcileError(f"failed to remove finalizer: {error}") from error


async def _release_once(client: Client, resource: Resource, obj: Object, finalizer: str) -> None:
    if finalizer not in finalizers(obj):
        return
    own, place = key(obj), f"/metadata/finalizers/{finalizers(obj).index(finalizer)}"
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": uid(obj)},
        {"op": "test", "path": place, "value": finalizer},
        {"op": "remove", "path": place},
    ]
    await client.patch(resource, own, patch, content_type=JSON_PATCH)


async def _write(client: Client, resource: Resource, obj: Object, wanted: list[str]) -> Object:
    # A merge patch replaces the list: the resourceVersion protects entries that another client has added meanwhile.
    meta = {"resourceVersion": metadata(obj)["resourceVersion"], "finalizers": wanted or None}
    own = key(obj)
    return await client.patch(resource, own, {"metadata": meta})
