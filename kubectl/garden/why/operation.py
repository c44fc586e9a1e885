"""Findings about the operation of a Shoot: progress, causes of failure, next steps, and whether the gardenlet is
active.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from gardener import keys
from gardener.api.garden import SEEDS, SHOOTS
from gardener.error_codes import NOT_RETRIED
from gardener.error_codes import remedy as remedy_of
from gardener.garden.domains import NAMESPACE
from gardener.garden.shoots import FAILED, SUCCEEDED, error_codes, last_errors, last_operation, met_rate_limit
from gardener.operations import WAITS_FOR_SEED
from kube.clock import time_or_none
from kube.objects import Key, Object, annotations, integer, is_deleting, is_truthy, key, metadata, spec, text, texts
from kube.paths import at
from kubectl.garden.why import seed as seeds
from kubectl.garden.why.finding import Finding, Level, about_it, command, one_line, plugin_command, when

_ERROR, _PROCESSING = "Error", "Processing"
_MOST_ERRORS = 5
_STUCK = timedelta(minutes=30)
"""Longer than a task waits for most objects."""
_NOT_FOUND = " not found"
_TRIES = "12h (unless its configuration sets another time)"


def commanded(shoot: Object, operation: str) -> str:
    return command("annotate", SHOOTS, key(shoot), f"{keys.OPERATION}={operation}")


def hibernates(shoot: Object, is_enabled: bool) -> str:
    """Command that hibernates a Shoot or wakes it."""
    verb = "hibernate" if is_enabled else "wake"
    return plugin_command(verb, key(shoot))


def seed_name(shoot: Object) -> str:
    return text(at(shoot, "status", "seedName")) or text(spec(shoot).get("seedName"))


def findings(shoot: Object, now: datetime) -> Iterator[Finding]:
    last = last_operation(shoot)
    state, kind = text(last.get("state")), text(last.get("type"))
    if not last or state == SUCCEEDED:
        return
    changed = time_or_none(last.get("lastUpdateTime"))
    moment = "" if changed is None else f" at {when(changed, now)}"
    if state not in {FAILED, _ERROR}:
        yield _under_way(shoot, changed, now)
        return
    comes, remedy = _retry(shoot)
    message = f"{kind} failed{moment}; {comes}"
    yield Finding(level=Level.PROBLEM, about="operation", text=message, remedy=remedy, at=changed)
    for error in last_errors(shoot)[:_MOST_ERRORS] or [{"description": last.get("description")}]:
        yield _error(error, is_retried=state == _ERROR)
    if (more := len(last_errors(shoot)) - _MOST_ERRORS) > 0:
        yield Finding(level=Level.PROBLEM, about="error", text=f"... and {more} more")


def under_way(shoot: Object, now: datetime) -> str:
    """Type of the operation that makes progress; empty if there is none."""
    last = last_operation(shoot)
    changed = time_or_none(last.get("lastUpdateTime"))
    is_stuck = changed is not None and now - changed > _STUCK
    if last.get("state") != _PROCESSING or is_stuck or one_line(last.get("description")).startswith(WAITS_FOR_SEED):
        return ""
    return text(last.get("type"))


def _under_way(shoot: Object, changed: datetime | None, now: datetime) -> Finding:
    last = last_operation(shoot)
    task = one_line(last.get("description"))
    message = f"{last.get('type')} is {text(last.get('state')).lower()}, {integer(last.get('progress'))} %: {task}"
    level, remedy = Level.NEXT, ""
    if task.startswith(WAITS_FOR_SEED):
        level, remedy = Level.BLOCKED, about_it(SEEDS, Key("", seed_name(shoot)))
    elif changed is not None and now - changed > _STUCK:
        level, remedy = Level.PROBLEM, f"with read access to the seed: {_of_flow(shoot)}"
        message += f"; nothing new was reported since {when(changed, now)}"
    return Finding(level=level, about="operation", text=message.rstrip(": "), remedy=remedy, at=changed)


def _of_flow(shoot: Object) -> str:
    """Command that shows what the tasks of an operation wait for."""
    return f"{about_it(SHOOTS, key(shoot))} --seed-kubeconfig FILE"


def _retry(shoot: Object) -> tuple[str, str]:
    """Whether the operation is retried, and the remedy."""
    asking = commanded(shoot, keys.OPERATION_RETRY)
    if last_operation(shoot).get("state") == _ERROR:
        begun = text(at(shoot, "status", "retryCycleStartTime"))
        return f"the gardenlet tries again by itself, for {_TRIES} from {begun or 'the first try'}", ""
    if metadata(shoot).get("generation") != at(shoot, "status", "observedGeneration"):
        return "the spec has changed since, so the gardenlet tries again by itself", ""
    if met_rate_limit(shoot):
        return "it met a rate limit, and is tried again by itself after a while, up to ten times", f"or now: {asking}"
    if is_truthy(annotations(shoot).get(keys.NEEDS_RETRY)):
        return "it is tried again in the next maintenance", f"or now: {asking}"
    remedy = f"remove the cause, then: {asking}"
    if codes := sorted(error_codes(shoot) & NOT_RETRIED):
        return f"it is not tried again by itself, since {', '.join(codes)} requires an action", remedy
    return "it was given up after all attempts, and is not tried again by itself", remedy


def _error(error: Object, *, is_retried: bool) -> Finding:
    codes = texts(error.get("codes"))
    task = text(error.get("taskID"))
    message = f"{f'{task}: ' if task else ''}{one_line(error.get('description'))}"
    remedy = remedy_of(codes) if codes or is_retried else "correct its cause"
    if not codes and message.endswith(_NOT_FOUND):
        remedy = "create it, or correct the reference to it"
    return Finding(
        level=Level.PROBLEM,
        about="error",
        text=f"{message} ({', '.join(codes)})" if codes else message,
        remedy=remedy,
    )


def silence(shoot: Object, seed: Object | None, lease: Object | None, now: datetime) -> Iterator[Finding]:
    """Report a silent gardenlet, before its Seed reports it, if something waits for it."""
    renewed = time_or_none(spec(lease or {}).get("renewTime"))
    is_said = seed is not None and seeds.is_lost(seed)
    if renewed is None or is_said or now - renewed <= seeds.LATE or not waits_for_gardenlet(shoot):
        return
    name = seed_name(shoot)
    message = f"the last heartbeat of the gardenlet of its Seed {name} was at {when(renewed, now)}; its work is delayed"
    yield Finding(level=Level.BLOCKED, about="seed", text=message, remedy=about_it(SEEDS, Key("", name)), at=renewed)


def waits_for_gardenlet(shoot: Object) -> bool:
    """Whether something is left that only the gardenlet of its Seed can do."""
    is_observed = at(shoot, "status", "observedGeneration") == metadata(shoot).get("generation")
    is_done = last_operation(shoot).get("state") in {SUCCEEDED, FAILED}
    return bool(seed_name(shoot)) and (is_deleting(shoot) or not is_observed or not is_done)


def ignored(shoot: Object) -> Iterator[Finding]:
    if not is_truthy(annotations(shoot).get(keys.SHOOT_IGNORE)):
        return
    where = "" if key(shoot).namespace == NAMESPACE else ", if its configuration respects that"
    message = f"the annotation {keys.SHOOT_IGNORE} makes the gardenlet ignore it{where}: no operation starts"
    remedy = f"to end that: {command('annotate', SHOOTS, key(shoot), f'{keys.SHOOT_IGNORE}-')}"
    yield Finding(level=Level.BLOCKED, about="operation", text=message, remedy=remedy)
