"""`kubectl gardener wait`: until operations of Shoots end, or a condition holds."""

import click

from gardener.api.garden import SHOOTS
from kubectl import options, output
from kubectl.garden import selection, waiting
from kubectl.garden.selection import Selected
from kubectl.options import seconds_of
from kubectl.reader import Reader
from kubectl.session import Session, on_cluster


@click.command
@selection.flags
@click.option(
    "--for",
    "goal",
    default=waiting.NAMES[0],
    show_default=True,
    metavar="GOAL",
    help=f"What to wait for: {', '.join(waiting.NAMES)}.",
    shell_complete=lambda _ctx, _parameter, given: [each for each in waiting.NAMES if each.startswith(given)],
)
@options.timeout("30m")
@on_cluster(target=False, garden=True)
async def command(session: Session, *, goal: str, timeout: str, **given: object) -> int:
    """Waits by a watch, and shows the progress. The operation has ended when everything that was requested is carried
    out. Exit code 1: the time is over, or an operation failed and is not tried again.
    """
    reached, patience = waiting.goal_of(goal), seconds_of(timeout)
    selected = Selected.of(given)
    wanted = await selected.keys(session)
    if not wanted:
        output.waiting("no Shoot is selected")
        return 0
    if selected.names and goal != "deleted":
        for own in wanted:
            await Reader(session.source.client).demand(SHOOTS, own)
    return await waiting.wait_for(session, wanted, reached, seconds=patience)
