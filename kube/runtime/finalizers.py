"""Finalizers of objects: set before any other work for an object, removed when no work is left.

Only the list of finalizers is a precondition: other writes of the object are no conflict.
"""

from kube.errors import Conflict, KubeError, NotFound
from kube.objects import Object, finalizers, is_deleting, key
from kube.resources import Resource
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError
from kube.runtime.edits import edit


async def ensure_finalizer(client: Client, resource: Resource, obj: Object, finalizer: str) -> Object:
    """Add the finalizer to the object if it lacks it. Raises ReconcileError."""

    def added(live: Object) -> Object | None:
        present = finalizers(live)
        if finalizer in present:
            return None
        if is_deleting(live):
            raise Conflict(409, message=f"{key(live)} is being deleted")
        return {"metadata": {"finalizers": [*present, finalizer]}}

    try:
        return await edit(client, resource, obj, added)
    except KubeError as error:
        raise ReconcileError(f"failed to add finalizer: {error}") from error


async def remove_finalizer(client: Client, resource: Resource, obj: Object, finalizer: str) -> Object | None:
    """Remove the finalizer; return the object, None if it is gone or was recreated. Raises ReconcileError."""

    def removed(live: Object) -> Object | None:
        present = finalizers(live)
        left = [each for each in present if each != finalizer]
        return {"metadata": {"finalizers": left or None}} if left != present else None

    if not removed(obj):
        return obj
    try:
        written = await edit(client, resource, obj, removed)
    except NotFound:
        return None
    except KubeError as error:
        raise ReconcileError(f"failed to remove finalizer: {error}") from error
    return written if finalizers(written) or not is_deleting(written) else None
