"""`kubectl gardener hibernate`: Shoots without running control planes and nodes."""

import click

from kubectl.garden.changing import Change, changing_shoots, hibernation
from kubectl.session import Session


@click.command
@changing_shoots()
async def command(_: Session) -> Change:
    """Nodes, and everything on them that is not on a persistent volume, are deleted; the API server stops. Schedules in
    spec.hibernation stay in effect, and may wake a Shoot up.
    """
    return hibernation(enabled=True)
