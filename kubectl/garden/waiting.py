"""Wait for Shoots, by one watch: for the end of an operation, a condition, hibernation, or their deletion.

A line is written for each new state, once: those of an operation that is repeated would alternate. An operation that
failed for good ends the wait for its Shoot.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace

from gardener.api.garden import SHOOTS
from gardener.conditions import constraint
from gardener.garden.shoots import FAILED, SUCCEEDED, is_current, last_errors, last_operation, seeds_of
from gardener.operations import MIGRATE
from kube.errors import KubeError
from kube.objects import Key, Object, condition, integer, is_deleting, key, spec, text
from kube.paths import at
from kube.runtime.client import Selection, by_name
from kubectl import output
from kubectl.errors import UserError
from kubectl.garden.obstacles import pending_operation
from kubectl.garden.why.finding import about_it, one_line, plugin_command
from kubectl.session import Session
from kubectl.style import counted, shortened

_WIDTH = 200
_SHOWN = 10
"""Maximum number of Shoots whose progress is shown one by one."""


@dataclass(frozen=True, slots=True)
class Progress:
    text: str
    reached: bool = False
    hopeless: bool = False
    """Whether further waiting is pointless."""


Goal = Callable[[Object | None], Progress]
"""Evaluates the state of a Shoot; None: it does not exist."""

_GONE = Progress("it does not exist", hopeless=True)


# --- goals


def operation_ended(shoot: Object | None) -> Progress:
    """Everything that was requested has been carried out successfully."""
    if shoot is None:
        return _GONE
    last = last_operation(shoot)
    kind, state = text(last.get("type")), text(last.get("state"))
    if pending := pending_operation(shoot):
        return Progress(f"{pending} is requested, and has not begun")
    if not is_current(shoot):
        where = seeds_of(shoot)
        return Progress(f"waits for the gardenlet of Seed {where[-1]}" if where else "waits for a Seed")
    if state == FAILED:
        errors = last_errors(shoot) or [{"description": last.get("description")}]
        why = "; ".join(one_line(each.get("description")) for each in errors)
        return Progress(f"{kind} failed: {shortened(why, _WIDTH)}", hopeless=True)
    message = f"{kind} {state}, {integer(last.get('progress'))} %"
    if state == SUCCEEDED:
        if kind == MIGRATE or len(seeds_of(shoot)) > 1:
            return Progress(f"{message}; continues on Seed {text(spec(shoot).get('seedName'))}")
        return Progress(message, reached=True)
    details = shortened(one_line(last.get("description")), _WIDTH)
    return Progress(f"{message}: {details}" if details else message)


def deleted(shoot: Object | None) -> Progress:
    if shoot is None:
        return Progress("deleted", reached=True)
    if not is_deleting(shoot):
        return Progress("it is not being deleted", hopeless=True)
    return Progress(operation_ended(shoot).text)


def hibernated(*, enabled: bool) -> Goal:
    def goal(shoot: Object | None) -> Progress:
        if shoot is None:
            return _GONE
        ended = operation_ended(shoot)
        if (at(shoot, "status", "hibernated") is True) is enabled and ended.reached:
            return Progress("hibernated" if enabled else "awake", reached=True)
        if (at(shoot, "spec", "hibernation", "enabled") is True) is not enabled:
            verb = "hibernate" if enabled else "wake"
            return Progress(f"that is not requested; request it: {plugin_command(verb, key(shoot))}", hopeless=True)
        return replace(ended, reached=False)

    return goal


def has_condition(kind: str, status: str) -> Goal:
    def goal(shoot: Object | None) -> Progress:
        if shoot is None:
            return _GONE
        found = condition(shoot, kind) or constraint(shoot, kind)
        if found is None:
            return Progress(f"{kind} is not reported yet")
        message = f"{kind} is {text(found.get('status'))}"
        if found.get("status") == status:
            return Progress(message, reached=True)
        return Progress(f"{message}: {shortened(one_line(found.get('message')), _WIDTH)}".rstrip(": "))

    return goal


_GOALS = {
    "operation": operation_ended,
    "deleted": deleted,
    "hibernated": hibernated(enabled=True),
    "awake": hibernated(enabled=False),
}
NAMES = (*_GOALS, "condition=TYPE[=STATUS]")


def goal_of(given: str) -> Goal:
    """Goal named on the command line. Raises UserError."""
    kind, _, rest = given.partition("=")
    if kind == "condition" and rest:
        name, _, status = rest.partition("=")
        return has_condition(name, status or "True")
    if given not in _GOALS:
        raise UserError(f"{given!r} is nothing to wait for", hint=f"wait for one of: {', '.join(NAMES)}")
    return _GOALS[given]


# --- the wait


async def wait_for(session: Session, wanted: Collection[Key], goal: Goal, *, seconds: float) -> int:
    """Exit code 0 when all have reached the goal; 1 when time is up, or it became impossible for one."""
    waited = _Waited(goal, wanted)
    try:
        async with asyncio.timeout(seconds):
            await waited.follow(session)
    except TimeoutError:
        waited.give_up(seconds)
    return 1 if waited.failed else 0


class _Waited:
    def __init__(self, goal: Goal, wanted: Iterable[Key]) -> None:
        self._goal = goal
        self._left = dict.fromkeys(wanted, "")
        """Last known state."""
        self._total = len(self._left)
        self._shown: dict[Key, set[str]] = {own: set() for own in self._left}
        self._leaving: set[Key] = set()
        """Shoots that were being deleted: the end of this operation is that they are gone."""
        self.failed = 0

    async def follow(self, session: Session) -> None:
        # Late import: with its libraries, this takes a fifth of the time of a start.
        from kube.runtime.watch import Deleted, Event, ListBegins, ListEnds, Watcher

        if not self._left:
            return
        watcher = Watcher(session.source.client, SHOOTS, _selection(self._left), on_start_failure=_fail)
        listed: set[Key] = set()

        def note(event: Event) -> None:
            if isinstance(event, ListBegins):
                listed.clear()
            elif isinstance(event, ListEnds):
                for missing in self._left.keys() - listed:
                    self._note(missing, None)
            else:
                own = key(event.object)
                listed.add(own)
                if own in self._left:
                    self._note(own, None if isinstance(event, Deleted) else event.object)

        async with aclosing(watcher.events()) as events:
            async for event in events:
                note(event)
                if not self._left:
                    return

    def _note(self, own: Key, shoot: Object | None) -> None:
        found = self._goal(shoot)
        if shoot is None and self._goal is operation_ended and own in self._leaving:
            found = deleted(shoot)
        elif shoot is not None and is_deleting(shoot):
            self._leaving.add(own)
        if found.reached or found.hopeless:
            del self._left[own]
            self.failed += found.hopeless
            if found.hopeless:
                output.failed(f"Shoot {own}: {found.text}")
                if shoot is not None:
                    output.begin(about_it(SHOOTS, own))
            else:
                output.done(f"Shoot {own}: {found.text}")
            if self._total > _SHOWN and self._left:
                output.waiting(f"{len(self._left)} of {self._total} Shoots are left")
        else:
            self._left[own] = found.text
            if self._total <= _SHOWN and found.text not in self._shown[own]:
                self._shown[own].add(found.text)
                output.waiting(f"Shoot {own}: {found.text}")

    def give_up(self, seconds: float) -> None:
        self.failed += len(self._left)
        for own, state in list(self._left.items())[:_SHOWN]:
            output.failed(f"Shoot {own}: not reached after {seconds:g} s: {state or 'its state is not known'}")
        if (more := len(self._left) - _SHOWN) > 0:
            output.failed(f"and {counted(more, 'more Shoot')}")


def _fail(_: object, error: KubeError) -> None:
    raise error


def _selection(wanted: Collection[Key]) -> Selection:
    """The smallest watch that covers all."""
    namespaces = {each.namespace for each in wanted}
    if len(namespaces) > 1:
        return Selection()
    (namespace,) = namespaces
    names = {each.name for each in wanted}
    return Selection(namespace, field_selector=by_name(names.pop()) if len(names) == 1 else "")
