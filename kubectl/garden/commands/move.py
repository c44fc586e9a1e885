"""`kubectl gardener move`: control planes of Shoots on another Seed."""

import click

from gardener.api.garden import SEEDS
from kube.objects import Key
from kubectl.garden.changing import Change, changing_shoots, move
from kubectl.garden.selection import completed
from kubectl.reader import Reader
from kubectl.session import Session


@click.command
@click.option("--to", "seed", required=True, metavar="SEED", help="Destination Seed.", shell_complete=completed(SEEDS))
@changing_shoots(confirms=True)
async def command(session: Session, *, seed: str) -> Change:
    """The API servers of the Shoots are down during the move, and may get other addresses; workload keeps running.
    Requires the permission to update shoots/binding. A move can be reverted: move the Shoot back.
    """
    await Reader(session.source.client).demand(SEEDS, Key("", seed))
    return move(seed)
