"""`kubectl mr resume`: the end of a suspension."""

from typing import Annotated

import typer

from agent.api import MANAGED_RESOURCES
from agent.overview.states import SUSPEND_REASON, SUSPENDED_BY, SUSPENDED_SINCE, State, state_of, suspension
from agent.responsibility import IGNORE
from kubectl_mr import options, output
from kubectl_mr.session import Session, Where, run
from kubectl_mr.waiting import Goal, seconds_of, wait_for

_NOTES = dict.fromkeys((IGNORE, SUSPEND_REASON, SUSPENDED_BY, SUSPENDED_SINCE))


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
    """Whatever was changed meanwhile is put right; `kubectl mr diff` tells before what that is."""
    patience = seconds_of(timeout)

    async def work(session: Session) -> int:
        for name in names:
            found = await session.managed_resource(name)
            if state_of(found) is not State.SUSPENDED:
                output.waiting(f"ManagedResource {session.key(name)} was not suspended")
                continue
            patch = {"metadata": {"annotations": _NOTES}}
            await session.source.client.patch(MANAGED_RESOURCES, name, patch, namespace=session.namespace)
            output.begin(f"ManagedResource {session.key(name)} was suspended {suspension(found)}")
        return await wait_for(session, names, Goal.READY, timeout=patience) if wait else 0

    run(Where(kubeconfig=kubeconfig, context=context, namespace=namespace, target=target), work)
