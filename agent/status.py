"""Writing the status of a ManagedResource, which several controllers share.

Each controller computes the status that it wants from the present one, changing its own fields only. Nothing is written
if nothing changed; only changed fields are sent, with the resourceVersion as precondition; after a conflict the present
status is read and the computation done anew, so no controller overwrites what another has just said.
"""

from collections.abc import Callable

from kube.cache import Store
from kube.client import Client
from kube.errors import Conflict
from kube.objects import Object, key, metadata
from kube.resources import Resource

_ATTEMPTS = 5


async def update_status(
    client: Client,
    store: Store[Object],
    resource: Resource,
    obj: Object,
    compute: Callable[[Object], Object],
) -> Object:
    """The object with the status that `compute` makes of the present one, written if it differs.

    Raises:
        KubeError: it could not be written; Conflict after several attempts.
    """
    for attempt in range(_ATTEMPTS):
        old = obj.get("status") or {}
        new = compute(old)
        # An empty list or text is the same as none.
        changed = {
            field: new.get(field) or None
            for field in old.keys() | new.keys()
            if (old.get(field) or None) != (new.get(field) or None)
        }
        if not changed:
            return obj
        name = key(obj)
        patch = {"metadata": {"resourceVersion": metadata(obj)["resourceVersion"]}, "status": changed}
        try:
            written = await client.patch(resource, name.name, patch, namespace=name.namespace, subresource="status")
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
            obj = await client.get(resource, name.name, namespace=name.namespace)
            continue
        store.observe(written)
        return written
    raise AssertionError("unreachable")
