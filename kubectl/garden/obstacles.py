"""Whether a request to a Shoot would have an effect in its present state, so that a command explains it before it
writes.

Admission rejects what is not permitted, and its reason is shown. These rules are about requests that it accepts
although no program would carry them out, or that would replace another one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.garden.rotations import ONE_STEP, SSH
from gardener.garden.shoots import FAILED, SUCCEEDED, has_ssh, last_operation
from gardener.operations import ERROR
from kube.objects import Object, annotations, is_deleting, is_truthy, key, spec, text
from kube.paths import at
from kubectl.garden.why.finding import about_it, plugin_command


class Kind(Enum):
    IMPOSSIBLE = auto()
    UNNECESSARY = auto()
    """Left out, unless the Shoot is named."""
    DONE = auto()
    """The request is fulfilled, or made, already."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    kind: Kind
    text: str
    remedy: str = ""


Rule = Callable[[Object], Obstacle | None]
"""Returns the obstacle to a request, if there is one."""


def first_of(*rules: Rule) -> Rule:
    def rule(shoot: Object) -> Obstacle | None:
        return next((found for each in rules if (found := each(shoot)) is not None), None)

    return rule


# --- rules that several requests share


def in_deletion(shoot: Object) -> Obstacle | None:
    if not is_deleting(shoot):
        return None
    return Obstacle(Kind.IMPOSSIBLE, "it is being deleted", f"see its progress: {_why(shoot)}")


def pending_operation(shoot: Object) -> str:
    """Requested operation that will begin: none while the last one is Failed, and no retry.

    Admission takes a retry from a Shoot that is Failed; one that is still there was requested before, without effect.
    """
    requested = annotations(shoot).get(keys.OPERATION, "")
    is_failed = last_operation(shoot).get("state") == FAILED
    return "" if is_failed or requested == keys.OPERATION_RETRY else requested


def other_request(operation: str) -> Rule:
    """A request that has not begun, which this one would replace."""

    def rule(shoot: Object) -> Obstacle | None:
        pending = pending_operation(shoot)
        if not pending:
            return None
        if pending == operation:
            return Obstacle(Kind.DONE, f"{operation} is requested already, and has not begun")
        wait = plugin_command("wait", key(shoot))
        return Obstacle(Kind.IMPOSSIBLE, f"{pending} is requested, and has not begun", f"let it end first: {wait}")

    return rule


def _not_created(shoot: Object) -> Obstacle | None:
    if last_operation(shoot):
        return None
    message = "its creation has not begun" if spec(shoot).get("seedName") else "it is on no Seed yet"
    return Obstacle(Kind.IMPOSSIBLE, message, f"see what it waits for: {_why(shoot)}")


def _failed(shoot: Object) -> Obstacle | None:
    last = last_operation(shoot)
    if last.get("state") != FAILED:
        return None
    message = f"its last operation ({text(last.get('type'))}) failed, so that only a retry has an effect"
    return Obstacle(Kind.IMPOSSIBLE, message, f"remove the cause, then: {plugin_command('retry', key(shoot))}")


def _why(shoot: Object) -> str:
    return about_it(SHOOTS, key(shoot))


# --- requests


reconciliation = first_of(_not_created, _failed, other_request(keys.OPERATION_RECONCILE))
maintenance = first_of(in_deletion, other_request(keys.OPERATION_MAINTAIN))


def retry(shoot: Object) -> Obstacle | None:
    last = last_operation(shoot)
    kind, state = text(last.get("type")), text(last.get("state"))
    if state == FAILED:
        return None
    if state == ERROR:
        return Obstacle(Kind.UNNECESSARY, f"{kind} is in state {state}, so the gardenlet tries again by itself")
    if state == SUCCEEDED:
        remedy = f"to repeat it: {plugin_command('reconcile', key(shoot))}"
        return Obstacle(Kind.UNNECESSARY, f"{kind} has succeeded, so there is nothing to retry", remedy)
    message = f"{kind} is {state.lower()}, so there is nothing to retry" if state else "no operation has begun"
    return Obstacle(Kind.UNNECESSARY, message, f"see what it waits for: {_why(shoot)}")


def rotation(operation: str) -> Rule:
    def without_ssh(shoot: Object) -> Obstacle | None:
        if ONE_STEP.get(operation) != SSH or has_ssh(spec(shoot)):
            return None
        return Obstacle(Kind.UNNECESSARY, "its nodes have no SSH access, so there is no key pair to rotate")

    return first_of(in_deletion, _not_created, _failed, other_request(operation), without_ssh)


def hibernation(*, enabled: bool) -> Rule:
    def same(shoot: Object) -> Obstacle | None:
        if (at(shoot, "spec", "hibernation", "enabled") is True) is not enabled:
            return None
        return Obstacle(Kind.DONE, "it is to be hibernated already" if enabled else "it is to be awake already")

    return first_of(in_deletion, same)


def move(seed: str) -> Rule:
    def rule(shoot: Object) -> Obstacle | None:
        scheduled = text(spec(shoot).get("seedName"))
        if scheduled == seed:
            is_there = text(at(shoot, "status", "seedName")) in {"", seed}
            return Obstacle(
                Kind.DONE, f"it is on Seed {seed} already" if is_there else f"it moves to Seed {seed} already"
            )
        if not scheduled:
            return Obstacle(Kind.IMPOSSIBLE, "it is on no Seed yet", f"see what it waits for: {_why(shoot)}")
        return None

    return first_of(in_deletion, rule)


def deletion(shoot: Object) -> Obstacle | None:
    if is_deleting(shoot) and is_truthy(annotations(shoot).get(keys.CONFIRM_DELETION)):
        return Obstacle(Kind.DONE, "it is being deleted already", f"see its progress: {_why(shoot)}")
    return None
