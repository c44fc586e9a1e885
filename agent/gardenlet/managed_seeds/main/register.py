"""The Seed of a ManagedSeed with a template: created and updated from it. Its gardenlet is not installed here.

Labels and annotations of other clients stay. A Seed that was not created from the template has another owner.
"""

from agent.gardenlet.bootstrap.rules.registration import new_seed, seed_patch
from gardener.api.garden import MANAGED_SEEDS, SEEDS
from kube.objects import Object, controller_of, key, mapping, metadata, uid
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError


async def register(garden: Client, managed_seed: Object, template: Object) -> None:
    """Create or update the Seed; `template` includes its name.

    Raises:
        ReconcileError: it has another owner.
    """
    name = key(managed_seed).name
    live = await garden.find(SEEDS, name)
    if live is None:
        seed, owner = new_seed(template), controller_reference(managed_seed)
        await garden.create(SEEDS, {**seed, "metadata": {**metadata(seed), "ownerReferences": [owner]}})
        return
    owner = mapping(controller_of(live))
    if (owner.get("kind"), owner.get("name")) != (MANAGED_SEEDS.kind, name):
        raise ReconcileError(
            f'seed "{name}" was not created from spec.seedTemplate; delete it, or create a ManagedSeed with another '
            "name"
        )
    if patch := seed_patch(live, template):
        meta = {**mapping(patch.get("metadata")), "resourceVersion": metadata(live)["resourceVersion"]}
        await garden.patch(SEEDS, name, {**patch, "metadata": meta})


def controller_reference(managed_seed: Object) -> Object:
    """Owner reference to the ManagedSeed, for its objects in the garden."""
    reference = MANAGED_SEEDS.reference(name=key(managed_seed).name, uid=uid(managed_seed))
    return {**reference, "controller": True, "blockOwnerDeletion": True}
