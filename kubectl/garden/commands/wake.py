"""`kubectl gardener wake`: Shoots that were hibernated."""

import click

from kubectl.garden.changing import Change, changing_shoots, hibernation
from kubectl.session import Session


@click.command
@changing_shoots()
async def command(_: Session) -> Change:
    """Schedules in spec.hibernation stay in effect, and may hibernate a Shoot again."""
    return hibernation(enabled=False)
