"""`kubectl mr reconcile`: have a pass at once, and see what comes of it."""

from typing import Annotated

import typer

from agent.api import MANAGED_RESOURCES
from agent.managed_resource.keys import OPERATION, OPERATION_RECONCILE
from agent.overview.states import State, state_of
from kube.objects import Object
from kubectl_mr import options, output
from kubectl_mr.errors import UserError
from kubectl_mr.session import Session, Where, run
from kubectl_mr.waiting import Goal, seconds_of, wait_for


def command(
    *,
    names: options.Names,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until they are ready.")] = True,
    timeout: options.TimeoutFlag = "1m",
    namespace: options.NamespaceFlag = None,
    context: options.ContextFlag = None,
    kubeconfig: options.KubeconfigFlag = None,
    target: options.TargetFlag = None,
) -> None:
    """The agent puts drift right by itself; this is for those who do not want to wait until it tries again."""
    patience = seconds_of(timeout)

    async def work(session: Session) -> int:
        for name in names:
            demand_reconcilable(await session.managed_resource(name))
        for name in names:
            patch = {"metadata": {"annotations": {OPERATION: OPERATION_RECONCILE}}}
            await session.source.client.patch(MANAGED_RESOURCES, name, patch, namespace=session.namespace)
            output.begin(f"ManagedResource {session.key(name)}: asked for a pass")
        return await wait_for(session, names, Goal.READY, timeout=patience) if wait else 0

    run(Where(kubeconfig=kubeconfig, context=context, namespace=namespace, target=target), work)


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
