"""`kubectl mr resume`: the end of a suspension."""

from typing import Annotated

import typer

from gardener.keys import IGNORE, IGNORE_REASON, IGNORED_BY, IGNORED_SINCE
from gardener.kinds import MANAGED_RESOURCES
from gardener.overview.states import State, state_of, suspension
from kubectl_mr import options, output
from kubectl_mr.session import Session, on_cluster
from kubectl_mr.waiting import Goal, seconds_of, wait_for

_NOTES = dict.fromkeys((IGNORE, IGNORE_REASON, IGNORED_BY, IGNORED_SINCE))


@on_cluster()
async def command(
    session: Session,
    *,
    names: options.Names,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until they are ready.")] = True,
    timeout: options.TimeoutFlag = "1m",
) -> int:
    """Whatever was changed meanwhile is put right; `kubectl mr diff` tells before what that is."""
    patience = seconds_of(timeout)
    for name in names:
        found = await session.managed_resource(name)
        if state_of(found) is not State.SUSPENDED:
            output.waiting(f"ManagedResource {session.key(name)} was not suspended")
            continue
        patch = {"metadata": {"annotations": _NOTES}}
        await session.source.client.patch(MANAGED_RESOURCES, name, patch, namespace=session.namespace)
        output.begin(f"ManagedResource {session.key(name)} was suspended {suspension(found)}")
    return await wait_for(session, names, Goal.READY, timeout=patience) if wait else 0
