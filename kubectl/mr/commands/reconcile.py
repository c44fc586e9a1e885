"""`kubectl mr reconcile`: start a pass at once, and show its result."""

from collections.abc import Sequence

import click

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import OPERATION, OPERATION_RECONCILE
from gardener.overview import hints
from gardener.overview.states import ResourceState, state_of
from kube.objects import Key, Object, annotations, is_deleting, key
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.mr import managed_resources, parameters
from kubectl.mr.waiting import Goal, wait_for
from kubectl.options import seconds_of
from kubectl.session import Session, on_cluster


@click.command
@parameters.names
@parameters.all_here
@parameters.all_namespaces("everywhere")
@parameters.wait
@options.timeout("1m")
@on_cluster()
async def command(
    session: Session, *, names: Sequence[str], all_here: bool, everywhere: bool, wait: bool, timeout: str
) -> int:
    """The agent corrects drift periodically; this command triggers the next attempt now."""
    patience = seconds_of(timeout)
    chosen: list[Key] = []
    for found in await managed_resources.selected(session, names, all_here=all_here, everywhere=everywhere):
        try:
            if is_deleting(found) and not names:
                raise UserError(f"ManagedResource {key(found).name} is being deleted")
            demand_reconcilable(found)
        except UserError as error:
            if names:
                raise
            output.waiting(f"{error}: left out")
        else:
            chosen.append(key(found))
    for name in chosen:
        await session.source.client.annotate(MANAGED_RESOURCES, name, {OPERATION: OPERATION_RECONCILE})
        output.begin(f"ManagedResource {name}: requested a reconciliation")
    return await wait_for(session, chosen, Goal.READY, timeout=patience) if wait else 0


def demand_reconcilable(managed_resource: Object) -> None:
    """Return if an agent would reconcile it. Raises UserError if none would."""
    name = key(managed_resource).name
    if state_of(managed_resource) is ResourceState.SUSPENDED:
        raise UserError(f"ManagedResource {name} is suspended", hint=hints.command("resume", key(managed_resource)))
    operation = annotations(managed_resource).get(OPERATION)
    if operation not in {None, "", OPERATION_RECONCILE}:
        raise UserError(
            f"ManagedResource {name} has the annotation {OPERATION}={operation}, which must not be overwritten",
            hint="it stands for a migration between clusters; wait until that is over",
        )
