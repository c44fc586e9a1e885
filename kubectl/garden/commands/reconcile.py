"""`kubectl gardener reconcile`: the next reconciliation of Shoots, at once."""

import click

from gardener import keys
from kubectl.garden import obstacles
from kubectl.garden.changing import Change, changing_shoots, operation
from kubectl.session import Session


@click.command
@changing_shoots()
async def command(_: Session) -> Change:
    """Applies changes of the spec that wait for the maintenance time window, too. A Shoot whose operation failed needs
    kubectl gardener retry.
    """
    return Change(
        text="requested a reconciliation",
        obstacle=obstacles.reconciliation,
        write=operation(keys.OPERATION_RECONCILE),
    )
