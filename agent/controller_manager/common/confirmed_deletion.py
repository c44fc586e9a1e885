"""Deletes what the API server gives up only after a confirmation: two annotations, then DELETE.

What is deleted here is lost for good, so the decision is made once more just before, by what the API server says
itself. DELETE carries the uid, so that an object that was made anew under the same name stays. If this process ends
between the two requests, the object is confirmed and still there; the next pass decides anew.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from gardener import keys
from kube.errors import NotFound
from kube.objects import Object, annotations, is_deleting, is_truthy, key, metadata, uid
from kube.resources import Resource
from kube.runtime.client import Client


async def delete_confirmed(
    client: Client, resource: Resource, obj: Object, *, now: datetime, is_due: Callable[[Object], Awaitable[bool]]
) -> bool:
    """Whether the object was asked to be deleted.

    Args: is_due: gets the object as it is in the API server, and reads from there all else that it decides by.

    Raises: KubeError: the API server can't be asked, or refuses. Conflict: the object has been changed meanwhile.
    """
    own = key(obj)
    live = await client.find(resource, own)
    if live is None or uid(live) != uid(obj) or is_deleting(live) or not await is_due(live):
        return False
    try:
        if not _is_confirmed(live):
            meta = {"resourceVersion": metadata(live)["resourceVersion"], "annotations": _confirmation(now)}
            await client.patch(resource, own, {"metadata": meta})
        await client.delete(resource, own, uid=uid(live))
    except NotFound:
        return False
    return True


def _is_confirmed(obj: Object) -> bool:
    return is_truthy(annotations(obj).get(keys.CONFIRM_DELETION)) and keys.TIMESTAMP in annotations(obj)


def _confirmation(now: datetime) -> dict[str, str]:
    moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    return {keys.CONFIRM_DELETION: "true", keys.TIMESTAMP: moment}
