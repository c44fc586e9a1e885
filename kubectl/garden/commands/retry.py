"""`kubectl gardener retry`: another attempt of operations that failed for good."""

import click

from gardener import keys
from kubectl.garden import obstacles
from kubectl.garden.changing import Change, changing_shoots, operation
from kubectl.session import Session


@click.command
@changing_shoots()
async def command(_: Session) -> Change:
    """Correct the cause first: kubectl gardener why shoot NAME. With --all or -l, Shoots without a failed operation are
    left out.
    """
    return Change(text="requested a retry", obstacle=obstacles.retry, write=operation(keys.OPERATION_RETRY))
