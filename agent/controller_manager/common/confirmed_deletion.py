"""Delete objects whose deletion the API server requires to be confirmed: two annotations, then DELETE.

The deletion is final, so the decision is repeated just before, with the state in the API server. DELETE carries the
uid, so that an object recreated under the same name stays. If this process ends between the two requests, the object is
confirmed and still there; the next pass decides again.
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
    """Delete the object if it still is due, and return whether the deletion was requested.

    `is_due` gets the object from the API server, and reads everything else that it depends on from there.

    Raises:
        KubeError: the API server is unavailable, or refuses.
        Conflict: the object has been changed meanwhile.
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
