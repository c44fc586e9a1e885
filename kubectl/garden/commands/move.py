"""`kubectl gardener move`: control planes of Shoots on another Seed."""

import click

from gardenapi.api import GardenApi
from gardener.api.garden import SEEDS
from kube.objects import Key, Object
from kubectl.garden import obstacles
from kubectl.garden.changing import Change, changing_shoots
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
    return to_seed(seed)


def to_seed(seed: str) -> Change:
    async def bind(garden: GardenApi, shoot: Object) -> None:
        await garden.bind(shoot, seed)

    return Change(
        text=f"requested the move to Seed {seed}",
        obstacle=obstacles.move(seed),
        write=bind,
        question=f"This interrupts the API server, and moves to Seed {seed},",
    )
