"""`kubectl mr wait`: until ManagedResources are ready, or gone."""

from typing import Annotated

import typer

from kubectl_mr import options
from kubectl_mr.session import Session, Where, run
from kubectl_mr.waiting import Goal, seconds_of, wait_for


def command(
    *,
    names: options.Names,
    goal: Annotated[Goal, typer.Option("--for", help="What to wait for.")] = Goal.READY,
    timeout: options.TimeoutFlag = "5m",
    namespace: options.NamespaceFlag = None,
    context: options.ContextFlag = None,
    kubeconfig: options.KubeconfigFlag = None,
    target: options.TargetFlag = None,
) -> None:
    """Tells what is still missing, and which objects block a deletion and why. Exit code 1 if it took too long."""

    async def work(session: Session) -> int:
        return await wait_for(session, names, goal, timeout=seconds_of(timeout))

    run(Where(kubeconfig=kubeconfig, context=context, namespace=namespace, target=target), work)
