"""Objects that others own as well: a Namespace that a person has made, and that has to have some labels.

Of such an object only the labels and annotations of the manifest are set. It is created if it is not there, and never
removed.
"""

from kube.objects import Object, annotations, key, labels, metadata
from kube.resources import Resource
from kube.runtime.client import Client


def missing_metadata(manifest: Object, live: Object) -> Object | None:
    """The merge patch of what the live object lacks; None if that is nothing."""
    wanted = {
        name: lacking
        for name, of in (("labels", labels), ("annotations", annotations))
        if (lacking := {each: text for each, text in of(manifest).items() if of(live).get(each) != text})
    }
    return {"metadata": wanted} if wanted else None


async def share(
    client: Client, resource: Resource, manifest: Object, *, live: Object | None = None, is_absent: bool = False
) -> Object:
    """The object, with the labels and annotations of the manifest.

    Args:
        client: of the cluster.
        resource: the kind.
        manifest: what it has to have.
        live: as it has just been read; None: it is read, unless `is_absent` is set.
        is_absent: it has just been looked for, and is not there.

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
    # Not one that was made meanwhile in its place.
    patch["metadata"]["uid"] = metadata(live).get("uid")
    return await client.patch(resource, name, patch)
