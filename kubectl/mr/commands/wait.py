"""`kubectl mr wait`: until ManagedResources are ready, or gone."""

from collections.abc import Sequence

import click

from kube.objects import key
from kubectl import options
from kubectl.mr import managed_resources, parameters
from kubectl.mr.managed_resources import demand_selection
from kubectl.mr.waiting import Goal, wait_for
from kubectl.options import seconds_of
from kubectl.session import Session, on_cluster


@click.command
@parameters.names
@parameters.all_here
@parameters.all_namespaces("everywhere")
@click.option(
    "--for", "goal", type=options.OneOf(Goal), default=Goal.READY.value, show_default=True, help="State to wait for."
)
@options.timeout("5m")
@on_cluster()
async def command(
    session: Session, *, names: Sequence[str], all_here: bool, everywhere: bool, goal: Goal, timeout: str
) -> int:
    """Shows missing conditions, and objects that block a deletion with the reason. Exit code 1: timeout."""
    patience = seconds_of(timeout)
    demand_selection(names, all_here=all_here, everywhere=everywhere)
    if names:
        wanted = [session.key(name) for name in names]  # may be gone already
    else:
        found = await managed_resources.selected(session, (), all_here=all_here, everywhere=everywhere)
        wanted = [key(obj) for obj in found]
    return await wait_for(session, wanted, goal, timeout=patience)
