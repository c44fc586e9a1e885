"""Responsibility for a Shoot: only one Seed acts and reports. Its gardenlet stops as soon as another Seed, or a
replacement of this one, takes over.

It also stops, to begin again, when the settings of the control plane change during a creation or reconciliation, a file
that they name (in a ConfigMap or Secret), or the Shoot is deleted: with the previous ones, a program may never start,
and the change may be the correction. Changes that wait for the maintenance time window are no reason. A migration stops
when its destination changes.

Each operation starts with a write of the status, which is refused if the spec or the last operation of the Shoot has
changed since it was read. A running operation is cancelled by the event that reports the change.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from gardener import operations
from gardener.garden.shoots import is_confined, is_on, operation_of
from gardener.tenant_files.references import references
from kube.errors import KubeError
from kube.objects import Key, Object, is_deleting, key, spec, uid
from kube.paths import mapping_at
from kube.resources import Resource
from kube.runtime.cache import Change, Store
from kube.runtime.client import Client
from kube.runtime.status import Overtaken

T = TypeVar("T")
_APPLYING = frozenset({operations.CREATE, operations.RECONCILE})
_FILES_SECONDS = 2.0
"""Seconds between checks of referenced files while an operation runs."""


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


async def files_changed(garden: Client, shoot: Object) -> None:
    """Return when the data of a ConfigMap or Secret with a file for the API server have changed; else wait for ever.

    Other controllers write their finalizers and annotations, which are no reason to begin again.
    """
    server = mapping_at(spec(shoot), "kubernetes", "kubeAPIServer")
    places = [(each.purpose.resource, Key(key(shoot).namespace, each.name)) for each in references(server)]
    if not places or operation_of(shoot) not in _APPLYING:
        await asyncio.Event().wait()
    before: list[Object] | None = None
    while True:
        with suppress(KubeError):
            now = [await _data(garden, *each) for each in places]
            if before is not None and now != before:
                return
            before = now
        await asyncio.sleep(_FILES_SECONDS)


async def _data(garden: Client, resource: Resource, name: Key) -> Object:
    live = await garden.find(resource, name) or {}
    return {field: live.get(field) for field in ("data", "binaryData")}


async def while_on(
    seed: str,
    shoots: Store[Object],
    shoot: Object,
    run: Callable[[], Awaitable[T]],
    *,
    until: Callable[[], Awaitable[None]] | None = None,
) -> T:
    """Run and return the result when done, or until this Seed loses responsibility, or has to apply other settings.

    Args: until: returns when the settings have changed in another way.

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
    running = asyncio.ensure_future(run())
    leaving: list[asyncio.Future[Any]] = [asyncio.ensure_future(left.wait())]
    leaving += [asyncio.ensure_future(until())] if until is not None else []
    try:
        await asyncio.wait([running, *leaving], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise Overtaken(shoot)
        return running.result()
    finally:
        unsubscribe()
        for each in leaving:
            each.cancel()
        if not running.done():
            running.cancel()
            await asyncio.wait([running])
