"""Responsibility for a Shoot: only one Seed acts and reports. Its gardenlet stops as soon as another Seed, or a
replacement of this one, takes over.

Each operation starts with a write of the status, which the API server refuses if the Shoot has changed since it was
read. A running operation is cancelled by the event that reports the change.
"""

import asyncio
from collections.abc import Awaitable, Callable

from gardener import operations
from gardener.garden.shoots import is_on, operation_of
from kube.objects import Object, key
from kube.runtime.cache import Change, Store
from kube.runtime.status import Overtaken


def is_to_be_restored(shoot: Object) -> bool:
    """Whether the Shoot has to be restored, possibly on the same Seed after a loss of its cluster."""
    return operation_of(shoot) == operations.RESTORE


async def while_on(seed: str, shoots: Store[Object], shoot: Object, run: Callable[[], Awaitable[None]]) -> None:
    """Run until done, or until this Seed loses responsibility.

    Raises:
        Overtaken: another Seed is responsible now, or this one has to restore the Shoot; `run` was cancelled.
        Exception: raised by `run`.
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
