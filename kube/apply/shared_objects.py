"""Objects that have other owners as well: a user's Namespace that needs some labels.

By default, only the labels and annotations of the manifest are set. An object is created if it is absent, and never
removed.
"""

from collections.abc import Callable

from kube.objects import Object, annotations, key, labels, metadata, uid
from kube.resources import Resource
from kube.runtime.client import Client


def missing_metadata(manifest: Object, live: Object) -> Object | None:
    """Merge patch with the metadata that the live object lacks; None if it lacks none."""
    wanted = {
        name: lacking
        for name, of in (("labels", labels), ("annotations", annotations))
        if (lacking := {each: text for each, text in of(manifest).items() if of(live).get(each) != text})
    }
    return {"metadata": wanted} if wanted else None


async def ensure(
    client: Client,
    resource: Resource,
    manifest: Object,
    *,
    patch: Callable[[Object, Object], Object | None] = missing_metadata,
    live: Object | None = None,
    is_absent: bool = False,
) -> Object:
    """Create the object of the manifest, or patch the live one, and return it.

    Args:
        client: of the cluster.
        resource: the kind.
        manifest: desired object; created as it is if absent.
        patch: returns the merge patch for the manifest and the live object; None if it needs no change.
        live: as just read; None: it is read, unless `is_absent` is set.
        is_absent: a read has just shown that it does not exist.

    Raises: KubeError.
    """
    name = key(manifest)
    if live is None and not is_absent:
        live = await client.find(resource, name)
    if live is None:
        if created := await client.create_if_missing(resource, manifest):
            return created
        live = await client.get(resource, name)
    changes = patch(manifest, live)
    if changes is None:
        return live
    # Not an object that was recreated meanwhile.
    meta = {**metadata(changes), "uid": uid(live)}
    return await client.patch(resource, name, {**changes, "metadata": meta})
