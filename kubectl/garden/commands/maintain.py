"""`kubectl gardener maintain`: maintenance of Shoots outside their time window."""

import click

from gardener import keys
from kubectl.garden import obstacles
from kubectl.garden.changing import Change, changing_shoots, operation
from kubectl.session import Session


@click.command
@changing_shoots()
async def command(_: Session) -> Change:
    """Updates Kubernetes and machine images as configured for maintenance, and reconciles. The changes in advance:
    kubectl gardener why shoot NAME.
    """
    return Change(
        text="requested a maintenance", obstacle=obstacles.maintenance, write=operation(keys.OPERATION_MAINTAIN)
    )
