"""`kubectl mr resume`: the end of a suspension."""

from collections.abc import Sequence

import click

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import IGNORE, IGNORE_REASON, IGNORED_BY, IGNORED_SINCE
from gardener.overview.states import ResourceState, state_of, suspension
from kube.objects import Key, key
from kubectl import options, output
from kubectl.mr import managed_resources, parameters
from kubectl.mr.waiting import Goal, wait_for
from kubectl.options import seconds_of
from kubectl.session import Session, on_cluster

_NOTES = dict.fromkeys((IGNORE, IGNORE_REASON, IGNORED_BY, IGNORED_SINCE))


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
    """Reverts changes that were made in the meantime; `kubectl mr diff` shows them in advance."""
    patience = seconds_of(timeout)
    waited: list[Key] = []
    for found in await managed_resources.selected(session, names, all_here=all_here, everywhere=everywhere):
        name = key(found)
        if state_of(found) is ResourceState.SUSPENDED:
            await session.source.client.annotate(MANAGED_RESOURCES, name, _NOTES)
            output.begin(f"ManagedResource {name} was suspended {suspension(found)}")
        elif names:
            output.waiting(f"ManagedResource {name} was not suspended")
        else:
            continue
        waited.append(name)
    if not waited:
        output.waiting("none was suspended")
    return await wait_for(session, waited, Goal.READY, timeout=patience) if wait else 0
