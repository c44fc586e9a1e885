"""The Bastions of a Shoot, in the garden: they block its deletion and migration; without SSH they are deleted."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from agent.gardenlet.shoot.main.rules.cleanup import is_overdue
from gardener import keys
from gardener.api.garden import BASTIONS
from kube.errors import Conflict, NotFound
from kube.objects import Object, annotations, is_deleting, is_truthy, key, uid
from kube.runtime.client import Client, Form, Selection

STILL_THERE = "shoot has still Bastions"
_PATIENCE = timedelta(minutes=5)
"""Time that an extension has for a Bastion after its force deletion is confirmed."""


async def of(garden: Client, shoot: Object) -> list[Object]:
    """Return the Bastions of a Shoot, without spec and status."""
    selection = Selection(namespace=key(shoot).namespace, field_selector=f"spec.shootRef.name={key(shoot).name}")
    return await garden.list(BASTIONS, selection, form=Form.METADATA)


async def delete(garden: Client, found: Iterable[Object]) -> None:
    """Delete Bastions without waiting."""
    for each in found:
        if not is_deleting(each):
            with suppress(NotFound, Conflict):  # deleted, or recreated
                await garden.delete(BASTIONS, key(each), uid=uid(each))


async def force(garden: Client, found: Iterable[Object], *, now: datetime) -> bool:
    """Confirm the force deletion of Bastions, and return whether to wait: one is not overdue yet."""
    is_held = False
    for each in found:
        if not is_truthy(annotations(each).get(keys.CONFIRM_FORCE_DELETION)):
            await garden.annotate(BASTIONS, key(each), {keys.CONFIRM_FORCE_DELETION: "true"})
        is_held = is_held or not is_overdue(each, _PATIENCE, now=now)
    return is_held
