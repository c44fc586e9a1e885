"""Objects that have other owners as well: a user's Namespace that needs some labels.

Only the labels and annotations of the manifest are set. The object is created if it is absent, and never removed.
"""

from kube.objects import Object, annotations, key, labels, metadata
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


async def share(
    client: Client, resource: Resource, manifest: Object, *, live: Object | None = None, is_absent: bool = False
) -> Object:
    """Set the labels and annotations of the manifest, and return the object.

    Args:
        client: of the cluster.
        resource: the kind.
        manifest: object with the required metadata; created as it is if absent.
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
    patch = missing_metadata(manifest, live)
    if patch is None:
        return live
    # Not an object that was recreated meanwhile.
    patch["metadata"]["uid"] = metadata(live).get("uid")
    return await client.patch(resource, name, patch)
