"""`kubectl mr wait`: until ManagedResources are ready, or gone."""

from typing import Annotated

import typer

from kubectl_mr import options
from kubectl_mr.session import Session, on_cluster
from kubectl_mr.waiting import Goal, seconds_of, wait_for


@on_cluster()
async def command(
    session: Session,
    *,
    names: options.Names,
    goal: Annotated[Goal, typer.Option("--for", help="What to wait for.")] = Goal.READY,
    timeout: options.TimeoutFlag = "5m",
) -> int:
    """Tells what is still missing, and which objects block a deletion and why. Exit code 1 if it took too long."""
    return await wait_for(session, names, goal, timeout=seconds_of(timeout))
