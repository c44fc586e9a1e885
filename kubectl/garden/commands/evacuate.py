"""`kubectl gardener evacuate`: all Shoots of a Seed move to others."""

import click

from gardenapi.api import recognized
from gardener.api.garden import SEEDS
from kube.clock import utc_now
from kube.objects import Key
from kubectl import options, output
from kubectl.garden.changing import Outcome, confirm, summary
from kubectl.garden.evacuation import Evacuation, Result, Step, planned, request, warning_of_new_shoots
from kubectl.garden.selection import completed
from kubectl.options import seconds_of
from kubectl.reader import Reader
from kubectl.session import Session, gathered, on_cluster


@click.command
@click.argument("seed", metavar="SEED", shell_complete=completed(SEEDS))
@click.option(
    "--to",
    multiple=True,
    metavar="SEED",
    help="Permitted destination; may be repeated. Default: any that the scheduler would choose.",
    shell_complete=completed(SEEDS),
)
@click.option(
    "--max-parallel",
    "at_once",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    metavar="NUMBER",
    help="Maximum number of Shoots that move at the same time.",
)
@click.option(
    "--max-failures",
    "most_failures",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="NUMBER",
    help="Begin no further move when more moves than these have failed.",
)
@click.option("--dry-run", is_flag=True, help="Show the destinations, and have the API server check each request.")
@click.option("--yes", "-y", is_flag=True, help="Confirm what can't be undone, for scripts.")
@options.timeout("30m")
@on_cluster(target=False, garden=True)
async def command(
    session: Session,
    *,
    seed: str,
    to: tuple[str, ...],
    at_once: int,
    most_failures: int,
    dry_run: bool,
    yes: bool,
    timeout: str,
) -> int:
    """Chooses destinations like the scheduler, and waits for each move; one that takes longer than --timeout has
    failed. It can be interrupted and repeated: requested moves continue, and the next call waits for them. Requires the
    permission to update shoots/binding. Exit code 1: Shoots are left.
    """
    patience, reader = seconds_of(timeout), Reader(session.source.client)
    left = await reader.demand(SEEDS, Key("", seed))
    for name in to:
        await reader.demand(SEEDS, Key("", name))
    steps = await planned(reader, seed, to=to, now=utc_now())
    if not steps:
        output.done(f"Seed {seed} has no Shoots")
        return 0
    if warning := warning_of_new_shoots(left):
        output.warn(warning)
    moves = [each for each in steps if each.to]
    for each in steps:
        if each.problem:
            output.failed(f"Shoot {each.shoot}: {each.problem}")
    if dry_run:
        return max(await _checked(session, moves, at_once), int(len(moves) < len(steps)))
    if moves and not yes:
        confirm(f"This interrupts the API servers, and moves off Seed {seed},", [each.shoot for each in moves])
    evacuation = Evacuation(
        session=session,
        garden=await recognized(session.source.client),
        leaves=seed,
        at_once=at_once,
        most_failures=most_failures,
        seconds=patience,
    )
    results = [*await evacuation.carry_out(moves), *[Result.STAYS] * (len(steps) - len(moves))]
    output.begin(summary(results))
    return int(set(results) != {Result.MOVED})


async def _checked(session: Session, moves: list[Step], at_once: int) -> int:
    """Exit code after a dry run."""
    garden = await recognized(session.source.client.dry_run())

    async def check(step: Step) -> bool:
        if step.has_begun:
            output.waiting(f"Shoot {step.shoot}: it moves to Seed {step.to} already")
            return True
        return await request(step, garden, is_dry_run=True) is Outcome.CHANGED

    return int(not all(await gathered(check, moves, at_once=at_once)))
