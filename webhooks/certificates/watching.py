"""Keeps the certificates in order for as long as the process runs.

In steady state there is no request: watches of single objects show when a Secret or a webhook configuration changes,
and the clock shows when a certificate is due.
"""

import asyncio
import contextlib
import datetime
from collections.abc import Callable, Sequence

import structlog

from kube.errors import KubeError
from kube.resources import Resource
from kube.runtime.client import Client, Form, Selection
from kube.runtime.watch import ListBegins, Watcher
from webhooks.certificates.keeper import CannotKeep, Keeper

_AGAIN_AFTER_FAILURE = 30.0
_LONGEST_REST = 3600.0
"""Seconds after which the clock is looked at again: it may have been corrected."""
_BETWEEN_ROUNDS = 1.0

log = structlog.get_logger("certificates")


async def keep(
    keeper: Keeper,
    watched: Sequence[tuple[Client, Resource, str, str]],
    *,
    clock: Callable[[], datetime.datetime],
    between_rounds: float = _BETWEEN_ROUNDS,
) -> None:
    """Runs until it is cancelled.

    `watched` are client, resource, namespace and name of each object whose changes matter; however often they change,
    `between_rounds` seconds pass.
    """
    changed = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for client, resource, namespace, name in watched:
            tasks.create_task(_wake(changed, client, resource, namespace, name))
        while True:
            changed.clear()
            rest = await _round(keeper, clock)
            await asyncio.sleep(between_rounds)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await changed.wait()


async def _round(keeper: Keeper, clock: Callable[[], datetime.datetime]) -> float:
    """One round; returns the seconds until the next."""
    try:
        due = await keeper.run()
    except (KubeError, CannotKeep) as error:
        log.error("Cannot bring the certificates into order, trying again", error=str(error))
        return _AGAIN_AFTER_FAILURE
    return min(max((due - clock()).total_seconds(), 0.0), _LONGEST_REST)


async def _wake(changed: asyncio.Event, client: Client, resource: Resource, namespace: str, name: str) -> None:
    selection = Selection(namespace=namespace, field_selector=f"metadata.name={name}")
    watcher = Watcher(client, resource, selection, form=Form.METADATA)
    async with contextlib.aclosing(watcher.events()) as events:
        async for event in events:
            # At the end of a list too: what is in none was perhaps there in the last round.
            if not isinstance(event, ListBegins):
                changed.set()
