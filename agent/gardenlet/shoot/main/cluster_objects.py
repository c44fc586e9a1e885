"""Cluster objects in the seed: written if they would say something new."""

from gardener.api.extensions import CLUSTERS
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, annotations, key, metadata, spec
from kube.runtime.client import Client


async def write(seed: Client, wanted: Object) -> None:
    """Args: wanted: see `rules.cluster`. Raises KubeError."""
    name = key(wanted).name
    live = await seed.find(CLUSTERS, name)
    if live is None:
        try:
            await seed.create(CLUSTERS, wanted)
            return
        except AlreadyExists:
            live = await seed.get(CLUSTERS, name)
    notes = {**annotations(live), **annotations(wanted)}
    if spec(live) == spec(wanted) and annotations(live) == notes:
        return
    meta = {**metadata(live), "annotations": notes}
    await seed.replace(CLUSTERS, {**live, "metadata": meta, "spec": spec(wanted)})


async def delete(seed: Client, name: str) -> None:
    """Raises KubeError."""
    try:
        await seed.delete(CLUSTERS, name)
    except NotFound:
        return
