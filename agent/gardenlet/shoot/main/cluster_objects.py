"""Cluster objects in the seed: written only if their content changes."""

from contextlib import suppress

from agent.gardenlet.shoot.main.rules import cluster
from gardener import keys
from gardener.api.extensions import CLUSTERS
from gardener.garden.shoots import last_operation
from kube.differences import merge_patch
from kube.errors import NotFound
from kube.objects import Object, annotations, key, mapping, spec, uid
from kube.runtime.client import Client
from kube.runtime.edits import edit


async def write(seed: Client, wanted: Object, *, known: Object | None = None, is_absent: bool = False) -> Object:
    """Write a Cluster object, and return it.

    Args:
        seed: client of the seed.
        wanted: see `rules.cluster`.
        known: the object that this function returned earlier in the operation; it is read again only if it has changed.
        is_absent: whether the object most probably does not exist.

    Raises: KubeError.
    """
    if known is not None:
        with suppress(NotFound):
            return await _update(seed, known, wanted)
    name = key(wanted).name
    live = None if is_absent else await seed.find(CLUSTERS, name)
    if live is None:
        if created := await seed.create_if_missing(CLUSTERS, wanted):
            return created
        live = await seed.get(CLUSTERS, name)
    return await _update(seed, live, wanted)


async def _update(seed: Client, live: Object, wanted: Object) -> Object:
    return await edit(
        seed, CLUSTERS, live, lambda present: merge_patch({"spec": spec(present)}, {"spec": spec(wanted)})
    )


async def name_token_kubeconfig(seed: Client, live: Object, name: str) -> Object:
    """Annotate and return the object. Args: name: of the Secret that extensions mount."""
    if annotations(live).get(keys.GENERIC_TOKEN_KUBECONFIG) == name:
        return live
    return await seed.annotate(CLUSTERS, key(live), {keys.GENERIC_TOKEN_KUBECONFIG: name}, uid=uid(live))


async def show(seed: Client, name: str, shoot: Object) -> None:
    """Update only the Shoot in an existing Cluster object."""
    live = await seed.find(CLUSTERS, name)
    if live is not None:
        whole = {**spec(live), "shoot": cluster.shown(shoot)}
        await _update(seed, live, {**CLUSTERS.type_meta, "metadata": {"name": name}, "spec": whole})


async def show_operation(seed: Client, name: str, shoot: Object) -> None:
    """Update only the last operation of the Shoot in an existing Cluster object: its spec may not be rolled out yet."""
    live = await seed.find(CLUSTERS, name)
    shown = mapping(spec(live or {}).get("shoot"))
    if live is None or last_operation(shown) == last_operation(shoot):
        return
    present = {**shown, "status": {**mapping(shown.get("status")), "lastOperation": last_operation(shoot)}}
    await _update(
        seed, live, {**CLUSTERS.type_meta, "metadata": {"name": name}, "spec": {**spec(live), "shoot": present}}
    )


async def delete(seed: Client, name: str) -> None:
    """Delete a Cluster object if it exists."""
    await seed.delete_if_exists(CLUSTERS, name)
