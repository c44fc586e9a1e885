"""`kubectl mr reconcile`: have a pass at once, and see what comes of it."""

from typing import Annotated

import typer

from gardener.keys import OPERATION, OPERATION_RECONCILE
from gardener.kinds import MANAGED_RESOURCES
from gardener.overview.states import State, state_of
from kube.objects import Object
from kubectl_mr import options, output
from kubectl_mr.errors import UserError
from kubectl_mr.session import Session, on_cluster
from kubectl_mr.waiting import Goal, seconds_of, wait_for


@on_cluster()
async def command(
    session: Session,
    *,
    names: options.Names,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until they are ready.")] = True,
    timeout: options.TimeoutFlag = "1m",
) -> int:
    """The agent puts drift right by itself; this is for those who do not want to wait until it tries again."""
    patience = seconds_of(timeout)
    for name in names:
        demand_reconcilable(await session.managed_resource(name))
    for name in names:
        patch = {"metadata": {"annotations": {OPERATION: OPERATION_RECONCILE}}}
        await session.source.client.patch(MANAGED_RESOURCES, name, patch, namespace=session.namespace)
        output.begin(f"ManagedResource {session.key(name)}: asked for a pass")
    return await wait_for(session, names, Goal.READY, timeout=patience) if wait else 0


def demand_reconcilable(managed_resource: Object) -> None:
    """Raises UserError if no agent would care."""
    name = managed_resource["metadata"]["name"]
    if state_of(managed_resource) is State.SUSPENDED:
        raise UserError(f"ManagedResource {name} is suspended", hint=f"kubectl mr resume {name}")
    operation = (managed_resource["metadata"].get("annotations") or {}).get(OPERATION)
    if operation not in {None, "", OPERATION_RECONCILE}:
        raise UserError(
            f"ManagedResource {name} has the annotation {OPERATION}={operation}, which must not be overwritten",
            hint="it stands for a migration between clusters; wait until that is over",
        )
