"""Waiting with something to look at: what is still missing, and which object blocks a deletion, and why.

On a terminal the picture is drawn anew; elsewhere a line is written when there is something new. The ManagedResource is
read once a second, and its objects as long as they are what it waits for.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from gardener.keys import OPERATION, OPERATION_RECONCILE
from gardener.overview.objects import Health, Live, listed_in
from gardener.overview.states import State, is_observed, message_of, state_of
from kube.clock import parse_duration
from kube.errors import Unreachable
from kube.objects import Object, annotations
from kubectl_mr import output
from kubectl_mr.errors import UserError
from kubectl_mr.live import read_all
from kubectl_mr.session import Session
from kubectl_mr.style import Line, counted, cut, rendered
from kubectl_mr.words import health_word, state_word

_INTERVAL = 1.0
_SHOWN = 5
_WIDTH = 160


class Goal(StrEnum):
    READY = "ready"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of one ManagedResource at a moment."""

    name: str
    reached: bool
    line: Line
    """In one line."""
    blocking: Sequence[Line] = ()
    hopeless: str = ""
    """Why waiting any longer makes no sense."""


async def wait_for(session: Session, names: Sequence[str], goal: Goal, *, timeout: float) -> int:
    """Exit code 0 when all are there; 1 when it took too long, or can't come true."""
    deadline = time.monotonic() + timeout
    with _display() as draw:
        while True:
            found = [await _progress(session, name, goal) for name in names]
            draw(found)
            left = [progress for progress in found if not progress.reached]
            if not left or any(progress.hopeless for progress in left) or time.monotonic() >= deadline:
                break
            await asyncio.sleep(min(_INTERVAL, max(deadline - time.monotonic(), 0)))
    for progress in found:
        if progress.reached:
            output.done(f"{progress.name} is {goal}")
        else:
            why = progress.hopeless or f"not {goal} after {timeout:g} s"
            output.failed(f"{progress.name}: {why}; {rendered(progress.line, colors=False)}")
            for line in progress.blocking:
                output.waiting(rendered(line, colors=False))
    return 1 if left else 0


async def _progress(session: Session, name: str, goal: Goal) -> Progress:
    try:
        managed_resource = await (session.find(name) if goal is Goal.DELETED else session.managed_resource(name))
        if managed_resource is None:
            return Progress(name, reached=True, line=["gone"])
        found = await read_all(session.target, listed_in(managed_resource)) if _needs_objects(managed_resource) else []
    except Unreachable as error:
        return Progress(name, reached=False, line=[f"the API server does not answer: {error}"])
    return progress_of(name, managed_resource, found, goal)


def _needs_objects(managed_resource: Object) -> bool:
    return state_of(managed_resource) in {State.PROGRESSING, State.UNHEALTHY, State.DELETING}


def progress_of(name: str, managed_resource: Object, found: Sequence[Live], goal: Goal) -> Progress:
    """What one state and its objects mean for a goal."""
    state = state_of(managed_resource)
    text = " ".join(message_of(managed_resource).split())
    line: Line = [state_word(state), f": {cut(text, _WIDTH)}" if text else ""]
    if goal is Goal.DELETED:
        left = [live for live in found if live.object is not None]
        hopeless = "" if state is State.DELETING else "it is not being deleted"
        line = [state_word(state), f", {counted(len(left), 'object')} left" if state is State.DELETING else ""]
        return Progress(name, reached=False, line=line, blocking=_lines(left), hopeless=hopeless)
    reached = state is State.READY and is_observed(managed_resource) and not is_asked_for(managed_resource)
    hopeless = {State.SUSPENDED: "it is suspended", State.DELETING: "it is being deleted"}.get(state, "")
    waited = [live for live in found if live.status.health is not Health.HEALTHY]
    return Progress(name, reached=reached, line=line, blocking=_lines(waited), hopeless=hopeless)


def is_asked_for(managed_resource: Object) -> bool:
    """Whether a pass was asked for, and no agent has begun with it."""
    return annotations(managed_resource).get(OPERATION) == OPERATION_RECONCILE


def _lines(found: Sequence[Live]) -> list[Line]:
    lines: list[Line] = [
        [
            f"{live.name} ",
            health_word(live.status),
            f": {cut(live.status.message, _WIDTH)}" if live.status.message else "",
        ]
        for live in found[:_SHOWN]
    ]
    return lines if len(found) <= _SHOWN else [*lines, [f"and {len(found) - _SHOWN} more"]]


def seconds_of(duration: str) -> float:
    try:
        return parse_duration(duration)
    except ValueError as error:
        raise UserError(str(error), hint="write a duration such as 90s, 5m or 1h30m") from error


# --- drawing

Draw = Callable[[Sequence[Progress]], None]


def picture(found: Sequence[Progress]) -> list[Line]:
    lines: list[Line] = []
    for progress in found:
        lines.append([f"{progress.name} ", *progress.line])
        lines += [["  ", *line] for line in progress.blocking]
    return lines


@contextmanager
def _display() -> Iterator[Draw]:
    if sys.stderr.isatty():
        with _drawn_anew() as draw:
            yield draw
        return
    last: list[str] = []

    def tell(found: Sequence[Progress]) -> None:
        lines = [rendered(line, colors=False) for line in picture([p for p in found if not p.reached])]
        if lines != last:
            for line in lines:
                output.waiting(line)
            last[:] = lines

    yield tell


@contextmanager
def _drawn_anew() -> Iterator[Draw]:
    from rich.console import Console, Group
    from rich.live import Live as Picture
    from rich.spinner import Spinner
    from rich.text import Text

    console = Console(stderr=True, no_color=not output.has_colors(sys.stderr), highlight=False)
    with Picture(console=console, transient=True, refresh_per_second=8) as picture_on_screen:

        def draw(found: Sequence[Progress]) -> None:
            lines = [rendered(line, colors=output.has_colors(sys.stderr)) for line in picture(found)]
            picture_on_screen.update(Group(Spinner("dots", text="waiting"), *(Text.from_ansi(line) for line in lines)))

        yield draw
