"""Wait with progress: missing conditions, and objects that block a deletion, with the reason.

On a terminal the display is redrawn; elsewhere a line is written when something changes. The ManagedResource is read
once a second, and its objects as long as it waits for them.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from gardener.conditions import RESOURCES_APPLIED
from gardener.keys import OPERATION, OPERATION_RECONCILE
from gardener.managed_resource.conditions import DELETION_FAILED, is_observed
from gardener.managed_resource.references import listed_in
from gardener.managed_resource.remedies import remedies_of_failure
from gardener.overview.objects import Health, Live, as_reported
from gardener.overview.states import ResourceState, brief, message_of, state_of, warnings_of
from kube.errors import Unreachable
from kube.objects import Key, Object, annotations, condition
from kube.objects import text as text_of
from kube.runtime.polling import wait_while
from kubectl import output
from kubectl.mr import managed_resources
from kubectl.mr.causes import explained
from kubectl.mr.live import health_word, read_all
from kubectl.mr.managed_resources import state_word
from kubectl.session import Session, gathered
from kubectl.style import Line, counted, rendered, shortened

_INTERVAL = 1.0
_SHOWN = 5
"""Maximum number of objects of one ManagedResource."""
_PICTURED = 10
"""Maximum number of displayed ManagedResources."""
_AT_ONCE = 16
_WIDTH, _CAUSES_WIDTH = 160, 600
"""Characters of the message of an object, while it is waited for, and at the end."""
_FINE = frozenset({Health.HEALTHY, Health.COMPLETED})


class Goal(StrEnum):
    READY = "ready"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Progress:
    """Known state of one ManagedResource at a moment."""

    name: str
    reached: bool
    line: Line
    """Summary in one line."""
    blocking: Sequence[Line] = ()
    hopeless: str = ""
    """Reason why further waiting is pointless."""
    warnings: str = ""
    """Warnings when it was applied."""


async def wait_for(session: Session, wanted: Sequence[Key], goal: Goal, *, timeout: float, checksum: str = "") -> int:
    """Exit code 0 when all have reached the goal; 1 when it took too long, or became impossible.

    Args: checksum: of the data that has to be applied, if known: the agent may not have observed it yet.
    """
    found: dict[Key, Progress] = {}
    left = list(wanted)
    with _display() as draw:

        async def may_be_reached() -> str:
            nonlocal left
            read = await gathered(partial(_progress, session, goal, checksum), left, at_once=_AT_ONCE)
            found.update(zip(left, read, strict=True))
            draw(list(found.values()))
            left = [key for key in left if not found[key].reached]
            return "" if any(found[key].hopeless for key in left) else " ".join(map(str, left))

        await wait_while(may_be_reached, seconds=timeout, every=_INTERVAL)
    if left and goal is Goal.READY:
        found |= {key: await _progress(session, goal, checksum, key, explain=True) for key in left[:_SHOWN]}
    for progress in found.values():
        if progress.reached:
            output.done(f"{progress.name} is {goal}")
            if progress.warnings:
                output.warn(f"{progress.name}: {progress.warnings}")
        else:
            why = progress.hopeless or f"not {goal} after {timeout:g} s"
            output.failed(f"{progress.name}: {why}; {rendered(progress.line, colors=False)}")
            for line in progress.blocking:
                output.waiting(rendered(line, colors=False))
    return 1 if left else 0


async def _progress(session: Session, goal: Goal, checksum: str, wanted: Key, *, explain: bool = False) -> Progress:
    name = wanted.name if wanted.namespace == session.namespace else str(wanted)
    try:
        read = managed_resources.find if goal is Goal.DELETED else managed_resources.demand
        managed_resource = await read(session, wanted)
        if managed_resource is None:
            return Progress(name, reached=True, line=["gone"])
        listed = listed_in(managed_resource) if _needs_objects(managed_resource) else []
        found = as_reported(managed_resource, await read_all(session.target, listed))
        if explain:
            found = await explained(session.target, found)
    except Unreachable as error:
        return Progress(name, reached=False, line=[f"the API server does not answer: {error}"])
    width = _CAUSES_WIDTH if explain else _WIDTH
    return progress_of(name, managed_resource, found, goal, checksum=checksum, width=width)


def _needs_objects(managed_resource: Object) -> bool:
    return state_of(managed_resource) in {ResourceState.PROGRESSING, ResourceState.UNHEALTHY, ResourceState.DELETING}


def progress_of(
    name: str, managed_resource: Object, found: Sequence[Live], goal: Goal, *, checksum: str = "", width: int = _WIDTH
) -> Progress:
    """Evaluate one state and its objects for a goal."""
    state = state_of(managed_resource)
    text = brief(message_of(managed_resource))
    line: Line = [state_word(state), f": {shortened(text, _WIDTH)}" if text else ""]
    if goal is Goal.DELETED:
        left = [live for live in found if live.object is not None]
        hopeless = "" if state is ResourceState.DELETING else "it is not being deleted"
        line = [state_word(state), f", {counted(len(left), 'object')} left" if state is ResourceState.DELETING else ""]
        if _is_refused(managed_resource):
            line.append(f": {shortened(text, width)}")
        return Progress(name, reached=False, line=line, blocking=_lines(left, width), hopeless=hopeless)
    is_passed = is_observed(managed_resource) and not is_asked_for(managed_resource)
    is_applied = checksum in {"", (managed_resource.get("status") or {}).get("secretsDataChecksum")}
    reached = state is ResourceState.READY and is_passed and is_applied
    hopeless = {ResourceState.SUSPENDED: "it is suspended", ResourceState.DELETING: "it is being deleted"}.get(
        state, ""
    )
    waited = [live for live in found if live.status.health not in _FINE]
    warnings = message_of(managed_resource) if state is ResourceState.READY else warnings_of(managed_resource)
    return Progress(
        name, reached=reached, line=line, blocking=_lines(waited, width), hopeless=hopeless, warnings=warnings
    )


def _is_refused(managed_resource: Object) -> bool:
    """Whether a deletion needs more than waiting."""
    applied = condition(managed_resource, RESOURCES_APPLIED) or {}
    return applied.get("reason") == DELETION_FAILED or bool(remedies_of_failure(text_of(applied.get("message"))))


def is_asked_for(managed_resource: Object) -> bool:
    """Whether a pass was requested, and no agent has begun with it."""
    return annotations(managed_resource).get(OPERATION) == OPERATION_RECONCILE


def _lines(found: Sequence[Live], width: int) -> list[Line]:
    lines: list[Line] = [
        [
            f"{live.name} ",
            health_word(live.status),
            f": {shortened(live.status.message, width)}" if live.status.message else "",
        ]
        for live in found[:_SHOWN]
    ]
    return lines if len(found) <= _SHOWN else [*lines, [f"and {len(found) - _SHOWN} more"]]


# --- drawing

Draw = Callable[[Sequence[Progress]], None]


def picture(found: Sequence[Progress]) -> list[Line]:
    lines: list[Line] = []
    for progress in found[:_PICTURED]:
        lines.append([f"{progress.name} ", *progress.line])
        lines += [["  ", *line] for line in progress.blocking]
    return lines if len(found) <= _PICTURED else [*lines, [f"and {len(found) - _PICTURED} more"]]


@contextmanager
def _display() -> Iterator[Draw]:
    if sys.stderr.isatty():
        with _drawn_anew() as draw:
            yield draw
        return
    last: list[str] = []

    def show(found: Sequence[Progress]) -> None:
        lines = [rendered(line, colors=False) for line in picture([p for p in found if not p.reached])]
        if lines != last:
            for line in lines:
                output.waiting(line)
            last[:] = lines

    yield show


@contextmanager
def _drawn_anew() -> Iterator[Draw]:
    from rich.console import Console, Group
    from rich.live import Live as Picture
    from rich.spinner import Spinner
    from rich.text import Text

    console = Console(stderr=True, no_color=not output.has_colors(sys.stderr), highlight=False)
    with Picture(console=console, transient=True, refresh_per_second=8) as picture_on_screen:

        def draw(found: Sequence[Progress]) -> None:
            waited = [progress for progress in found if not progress.reached] or found
            lines = [rendered(line, colors=output.has_colors(sys.stderr)) for line in picture(waited)]
            picture_on_screen.update(Group(Spinner("dots", text="waiting"), *(Text.from_ansi(line) for line in lines)))

        yield draw
