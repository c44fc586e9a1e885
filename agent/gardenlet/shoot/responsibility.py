"""Responsibility for a Shoot: only one Seed acts and reports. Its gardenlet stops as soon as another Seed, or a
replacement of this one, takes over.

It also stops, to begin again, when the settings of the control plane change during a creation or reconciliation, or the
Shoot is deleted: with the previous ones, a program may never start, and the change may be the correction. Changes that
wait for the maintenance time window are no reason. A migration stops when its destination changes.

Each operation starts with a write of the status, which the API server refuses if the Shoot has changed since it was
read. A running operation is cancelled by the event that reports the change.
"""

import asyncio
from collections.abc import Awaitable, Callable

from gardener import operations
from gardener.garden.shoots import is_confined, is_on, operation_of
from kube.objects import Object, is_deleting, key, spec, uid
from kube.runtime.cache import Change, Store
from kube.runtime.status import Overtaken

_APPLYING = frozenset({operations.CREATE, operations.RECONCILE})


def is_to_be_restored(shoot: Object) -> bool:
    """Whether the Shoot has to be restored, possibly on the same Seed after a loss of its cluster."""
    return operation_of(shoot) == operations.RESTORE


def _has_other_settings(shoot: Object, operated: Object) -> bool:
    """Whether the control plane has other settings than those that the operation applies, or has to go elsewhere."""
    kind = operation_of(operated)
    if uid(shoot) != uid(operated):
        return False
    if kind == operations.MIGRATE:
        return spec(shoot).get("seedName") != spec(operated).get("seedName")
    if kind not in _APPLYING:
        return False
    waits = kind == operations.RECONCILE and is_confined(shoot)
    return is_deleting(shoot) or (not waits and spec(shoot).get("kubernetes") != spec(operated).get("kubernetes"))


async def while_on(seed: str, shoots: Store[Object], shoot: Object, run: Callable[[], Awaitable[None]]) -> None:
    """Run until done, or until this Seed loses responsibility, or has to apply other settings.

    Raises:
        Overtaken: another Seed is responsible now, or this one has to restore the Shoot, or to apply other settings;
            `run` was cancelled.
        Exception: raised by `run`.
    """
    left, is_here = asyncio.Event(), is_on(seed)

    def note(change: Change[Object]) -> None:
        if change.key != key(shoot) or change.new is None:
            return
        if not is_here(change.new) or (is_to_be_restored(change.new) and not is_to_be_restored(shoot)):
            left.set()
        if _has_other_settings(change.new, shoot):
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
