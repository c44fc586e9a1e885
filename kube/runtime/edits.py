"""Change a few fields of an object that other clients write at the same time.

    done = lambda live: {"metadata": {"annotations": {ANNOTATION: None}}}
    written = await edit(client, SHOOTS, shoot, done)

The resourceVersion is no precondition: writes of other fields do not matter. If one of the same fields was changed, the
object is read, and the change is computed again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kube.errors import Conflict, Invalid, NotFound
from kube.json_patches import guarded
from kube.objects import Object, annotations, key, resource_version, uid
from kube.resources import Resource
from kube.runtime.client import JSON_PATCH, Client

ATTEMPTS = 6

Change = Callable[[Object], Mapping[str, Any] | None]
"""Merge patch for an object; None or empty: nothing is to be changed."""


async def edit(client: Client, resource: Resource, obj: Object, change: Change) -> Object:
    """Change an object and return it.

    Args: obj: as known. change: called again if one of its fields was changed meanwhile.

    Raises: NotFound: the object is gone, or was recreated; KubeError: the write failed.
    """
    name = key(obj)
    for attempt in range(1, ATTEMPTS + 1):
        patch = change(obj)
        if not patch:
            return obj
        try:
            return await client.patch(resource, name, guarded(obj, patch), content_type=JSON_PATCH)
        except (Conflict, Invalid) as error:
            live = await client.get(resource, name)
            if uid(obj) not in {uid(live), ""}:
                raise NotFound(404, message=f"{resource.kind} {name} was recreated") from error
            is_refused = isinstance(error, Invalid) and resource_version(live) == resource_version(obj)
            if is_refused or attempt == ATTEMPTS:
                raise
            obj = live
    raise AssertionError


async def take_annotation(client: Client, resource: Resource, obj: Object, name: str) -> Object:
    """Remove an annotation that was acted on, unless it has another value by now; return the object.

    Raises: as `edit`.
    """
    value = annotations(obj).get(name)

    def taken(live: Object) -> Object | None:
        is_same = value is not None and annotations(live).get(name) == value
        return {"metadata": {"annotations": {name: None}}} if is_same else None

    return await edit(client, resource, obj, taken)
