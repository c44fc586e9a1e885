"""One Seed acts and reports for a Shoot: what its gardenlet does ends as soon as that is another one, or a new one that
takes its place.

Nothing begins without a write of the status, which the API server refuses if the Shoot has changed since it was read.
What has begun ends with the event that says so.
"""

import asyncio
from collections.abc import Awaitable, Callable

from gardener import operations
from gardener.garden.shoots import is_on, operation_of
from kube.objects import Object, key
from kube.runtime.cache import Change, Store
from kube.runtime.status import Overtaken


def is_to_be_restored(shoot: Object) -> bool:
    """Also on the Seed that it was on, if its cluster was lost."""
    return operation_of(shoot) == operations.RESTORE


async def while_on(seed: str, shoots: Store[Object], shoot: Object, run: Callable[[], Awaitable[None]]) -> None:
    """Raises Overtaken: another Seed is responsible now, or this one has to restore it, and `run` was cancelled;
    whatever `run` raises.
    """
    left, is_here = asyncio.Event(), is_on(seed)

    def note(change: Change[Object]) -> None:
        if change.key != key(shoot) or change.new is None:
            return
        if not is_here(change.new) or (is_to_be_restored(change.new) and not is_to_be_restored(shoot)):
            left.set()

    unsubscribe = shoots.subscribe(note)
    running, leaving = asyncio.ensure_future(run()), asyncio.ensure_future(left.wait())
    try:
        await asyncio.wait([running, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise Overtaken(shoot)
        running.result()
    finally:
        unsubscribe()
        leaving.cancel()
        if not running.done():
            running.cancel()
            await asyncio.wait([running])
