"""Commands that change Shoots: selection, confirmation, dry run, a bounded rate, progress, a summary, and waiting.

    @click.command
    @changing_shoots()
    async def command(session: Session) -> Change: ...

Each Shoot is read just before it is changed, and the write has the version that was read as its precondition. Requests
of a dry run pass through admission, and are not stored.
"""

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import click

from gardenapi.api import GardenApi, recognized
from gardener.api.garden import SHOOTS
from kube.errors import Conflict, KubeError, Unauthorized, Unreachable, refusal_of
from kube.objects import Key, Object, key, metadata, text
from kube.runtime.limiter import TokenBucket
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.garden import obstacles, selection
from kubectl.garden.obstacles import Kind, Rule
from kubectl.garden.selection import Selected
from kubectl.garden.waiting import Goal, hibernated, operation_ended, wait_for
from kubectl.options import seconds_of
from kubectl.reader import Reader
from kubectl.session import Session, gathered, on_cluster
from kubectl.style import counted, short_list

_AT_ONCE = 5
_ATTEMPTS = 5
"""Attempts of a write that conflicts with those of others."""


Write = Callable[[GardenApi, Object], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Attributes:
    text: message after the write.
    obstacle: to the request, in the state of the Shoot that is read before.
    write: sends the request for a Shoot with its version as precondition.
    question: what can't be undone, without the names of the Shoots; empty if the change can.
    goal: state that `--wait` waits for.
    """

    text: str
    obstacle: Rule
    write: Write
    question: str = ""
    goal: Goal = operation_ended


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flags:
    """Each field is a parameter of the commands."""

    dry_run: bool
    rate: float
    wait: bool
    timeout: str
    yes: bool = False


def operation(name: str) -> Write:
    """Write that requests an operation by its annotation."""

    async def write(garden: GardenApi, shoot: Object) -> None:
        await garden.operate(SHOOTS, key(shoot), name, version=_version(shoot))

    return write


def hibernation(*, enabled: bool) -> Change:
    async def write(garden: GardenApi, shoot: Object) -> None:
        change = {"metadata": {"resourceVersion": _version(shoot)}, "spec": {"hibernation": {"enabled": enabled}}}
        await garden.client.patch(SHOOTS, key(shoot), change)

    return Change(
        text="requested hibernation" if enabled else "requested the wake-up",
        obstacle=obstacles.hibernation(enabled=enabled),
        write=write,
        goal=hibernated(enabled=enabled),
    )


def move(seed: str) -> Change:
    async def bind(garden: GardenApi, shoot: Object) -> None:
        await garden.bind(shoot, seed)

    return Change(
        text=f"requested the move to Seed {seed}",
        obstacle=obstacles.move(seed),
        write=bind,
        question=f"This interrupts the API server, and moves to Seed {seed},",
    )


def _version(shoot: Object) -> str:
    return text(metadata(shoot).get("resourceVersion"))


_FLAGS = options.all_of(
    (
        click.option("--dry-run", is_flag=True, help="Have the API server check the request, without storing it."),
        click.option(
            "--rate",
            type=click.FloatRange(0.01, 100),
            default=5.0,
            show_default=True,
            metavar="NUMBER",
            help="Maximum number of Shoots to change per second.",
        ),
        click.option("--wait", is_flag=True, help="Wait until it is carried out."),
        options.timeout("1h"),
    )
)
_YES = click.option("--yes", "-y", is_flag=True, help="Confirm what can't be undone, for scripts.")


def changing_shoots(*, confirms: bool = False) -> Callable[[Callable[..., Awaitable[Change]]], Callable[..., None]]:
    """Turn a function that returns a change into one for click that applies it to the selected Shoots.

    Args: confirms: whether the change has to be confirmed.
    """

    def decorated(make: Callable[..., Awaitable[Change]]) -> Callable[..., None]:
        @functools.wraps(make)
        async def work(session: Session, **given: Any) -> int:
            selected = Selected.of(given)
            flags = _Flags(**{each.name: given.pop(each.name) for each in fields(_Flags) if each.name in given})
            return await _carry_out(session, selected, flags, await make(session, **given))

        made = _FLAGS(on_cluster(target=False, garden=True)(work))
        return selection.flags(_YES(made) if confirms else made)

    return decorated


class Outcome(StrEnum):
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    LEFT_OUT = "left out"
    FAILED = "failed"
    NOT_TRIED = "not tried"


_BAD = frozenset({Outcome.FAILED, Outcome.NOT_TRIED})


async def _carry_out(session: Session, selected: Selected, flags: _Flags, change: Change) -> int:
    patience = seconds_of(flags.timeout)
    chosen = await selected.keys(session)
    if not chosen:
        output.waiting("no Shoot is selected")
        return 0
    if change.question and not flags.dry_run and not flags.yes:
        confirm(change.question, chosen)
    client = session.source.client.dry_run() if flags.dry_run else session.source.client
    writer = Writer(
        reader=Reader(client),
        garden=await recognized(client),
        change=change,
        is_named=bool(selected.names),
        is_dry_run=flags.dry_run,
        bucket=TokenBucket(qps=flags.rate, burst=1),
    )
    outcomes = await gathered(writer.apply, chosen, at_once=_AT_ONCE)
    if len(chosen) > 1:
        output.begin(summary(outcomes))
    code = int(not _BAD.isdisjoint(outcomes))
    waited = [own for own, outcome in zip(chosen, outcomes, strict=True) if outcome is Outcome.CHANGED]
    if not flags.wait or flags.dry_run:
        return code
    return max(code, await wait_for(session, waited, change.goal, seconds=patience))


def summary(results: Sequence[StrEnum]) -> str:
    """Number of Shoots with each result, in the order of the results' definition."""
    counts = [f"{results.count(each)} {each}" for each in type(results[0]) if each in results]
    return f"{counted(len(results), 'Shoot')}: {', '.join(counts)}"


def confirm(question: str, chosen: Sequence[Key]) -> None:
    """Have the user confirm a change. Raises UserError: the user does not, or there is no terminal."""
    what = f"{question} {counted(len(chosen), 'Shoot')}: {short_list(list(map(str, chosen)), 10)}"
    if not sys.stdin.isatty():
        raise UserError(f"there is no terminal to confirm: {what}", hint="confirm it by --yes")
    output.warn(what)
    expected = chosen[0].name if len(chosen) == 1 else str(len(chosen))
    noun = "name of the Shoot" if len(chosen) == 1 else "number of Shoots"
    if click.prompt(f"Type the {noun} to confirm", default="", show_default=False, err=True) != expected:
        raise UserError("not confirmed; nothing is changed")


@dataclass(slots=True, kw_only=True)
class Writer:
    """Applies a change to Shoots. Attributes: is_named: whether the user has named each Shoot."""

    reader: Reader
    garden: GardenApi
    change: Change
    is_named: bool = True
    is_dry_run: bool = False
    bucket: TokenBucket | None = None
    is_stopped: bool = False
    """Whether a failure would be the same for all other Shoots."""

    async def apply(self, own: Key) -> Outcome:
        if self.is_stopped:
            return Outcome.NOT_TRIED
        if self.bucket is not None:
            await self.bucket.acquire()
        try:
            return await self._apply(own)
        except UserError as error:
            return _failure(str(error), error.hint)
        except (Unauthorized, Unreachable) as error:
            self.is_stopped = True
            return _failure(f"Shoot {own}: {error}", "")
        except KubeError as error:
            return _failure(f"Shoot {own}: {refusal_of(error)}", "")

    async def _apply(self, own: Key) -> Outcome:
        for attempt in range(1, _ATTEMPTS + 1):
            shoot = await self.reader.demand(SHOOTS, own)
            obstacle = self.change.obstacle(shoot)
            if obstacle is not None:
                return self._left(own, obstacle.kind, obstacle.text, obstacle.remedy)
            try:
                await self.change.write(self.garden, shoot)
            except Conflict:
                if attempt == _ATTEMPTS:
                    raise
                await asyncio.sleep(0.1 * attempt)
            else:
                break
        output.done(f"Shoot {own}: {self.change.text}{' (dry run: nothing is stored)' if self.is_dry_run else ''}")
        return Outcome.CHANGED

    def _left(self, own: Key, kind: Kind, reason: str, remedy: str) -> Outcome:
        message = f"Shoot {own}: {reason}"
        if kind is Kind.DONE:
            output.waiting(message)
            return Outcome.UNCHANGED
        if kind is Kind.UNNECESSARY and not self.is_named:
            output.waiting(f"{message}: left out")
            return Outcome.LEFT_OUT
        return _failure(message, remedy)


def _failure(message: str, remedy: str) -> Outcome:
    output.failed(message)
    if remedy:
        output.begin(remedy)
    return Outcome.FAILED
