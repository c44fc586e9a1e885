"""What would have to be removed or released, and may not be touched: sorted out before anything is written.

Restrictions may be newer than objects. Nothing of that is forgotten silently, nor tried time and again: it stays
listed, and the condition says why.
"""

import asyncio
import time

from agent.resource_manager.managed_resource.delete_options import DeleteOptions
from agent.resource_manager.managed_resource.ownership import Look
from agent.resource_manager.managed_resource.release import ReleaseError, find_releasable
from agent.resource_manager.managed_resource.removal import Removal, attempt
from gardener.managed_resource.inventory import InventoryDiff
from gardener.managed_resource.references import key_of_reference
from kube.apply.live_objects import key_of_live
from kube.errors import KubeError
from kube.objects import Object


async def restricted_objects(diff: InventoryDiff, options: DeleteOptions, at_once: asyncio.Semaphore) -> dict[str, str]:
    """Those that are there and ours; only reads. Returns object keys with the texts of the errors, in order."""
    if not options.owner.is_restricted:
        return {}
    unwanted = [each for each in diff.unwanted if await _is_restricted(each, options)]
    released = [each for each in diff.released if await _is_restricted(each, options)]
    if not unwanted and not released:
        return {}
    # Another ManagedResource that wants an object gets it.
    await options.ownership.look_at_all()
    now = time.monotonic()
    look = Look(now, at=now, next_look=now)
    found: dict[str, str] = {}

    async def check_unwanted(reference: Object) -> None:
        async with at_once:
            pending = await attempt(reference, options, look, Removal.restricted)
        if pending is not None and pending.is_restricted:
            found[pending.name] = pending.text

    async def check_released(reference: Object) -> None:
        try:
            async with at_once:
                await find_releasable(reference, options)
        except ReleaseError as error:
            found[key_of_reference(reference)] = str(error)

    await asyncio.gather(*map(check_unwanted, unwanted), *map(check_released, released))
    return dict(sorted(found.items()))


async def _is_restricted(reference: Object, options: DeleteOptions) -> bool:
    try:
        resource = await options.live.resource_of(reference)
    except KubeError:
        return False
    return bool(options.owner.problem(resource, key_of_live(resource, reference)))
