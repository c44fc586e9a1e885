"""Findings about a Shoot: obstacles to its deletion, its problems, and what happens to it next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gardener import keys
from gardener.api.garden import MANAGED_SEEDS, SEEDS, SHOOTS
from gardener.conditions import HIBERNATION_POSSIBLE, constraint
from gardener.garden import hibernation, lifetimes
from gardener.garden.maintenance import report, schedule
from gardener.garden.maintenance.plan import Plan, Restarts, plan
from gardener.garden.scheduling import Decision, Filter, waits
from gardener.garden.shoots import FAILED, SUCCEEDED, last_operation
from kube.clock import format_time, time_or_none
from kube.objects import (
    Key,
    Object,
    annotations,
    finalizers,
    integer,
    is_deleting,
    is_truthy,
    key,
    metadata,
    spec,
    text,
)
from kube.paths import at, mapping_at
from kubectl.garden.why import checks, operation
from kubectl.garden.why import seed as seeds
from kubectl.garden.why.finding import (
    CONDITION,
    Finding,
    Level,
    Users,
    about_it,
    command,
    conditions,
    deletion_begun,
    one_line,
    other_finalizers,
    since,
    when,
)

_PENDING = "Pending"
_SOON = timedelta(days=7)
_LATE = timedelta(minutes=5)
"""Tolerated delay of other programs."""
_MADE_UP_FOR = timedelta(hours=2)
"""Period in which the controller manager catches up on missed schedules, unless it is configured otherwise."""
_MOST_SEEDS = 50
_WITHOUT_CONTROL_PLANE = frozenset({"Create", "Restore", "Migrate", "Delete"})
"""Operations during which the control plane does not run all the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Surroundings of a Shoot; None: it does not exist, or could not be read."""

    profile: Object | None = None
    """Offered choices: the spec of a cloud profile."""
    seed: Object | None = None
    managed_seed: Key | None = None
    """ManagedSeed that makes a Seed of it."""
    lease: Object | None = None
    """Lease that the gardenlet of its Seed renews."""
    quotas: Sequence[Object] = ()
    decision: Decision | None = None
    """Decision that the scheduler would make now; None: it has nothing to decide, or not enough could be read."""


def findings(shoot: Object, around: Around, *, now: datetime) -> Iterator[Finding]:
    yield from _deletion(shoot, around, now)
    yield from _lost(shoot, around)
    yield from operation.findings(shoot, now)
    yield from _place(shoot, around, now)
    yield from operation.silence(shoot, around.seed, around.lease, now)
    yield from operation.ignored(shoot)
    if not _is_lost(around):
        yield from _pending(shoot, now)
    yield from _checks(shoot, around, now)
    if not is_deleting(shoot):
        yield from _expiration(shoot, around, now)
        yield from _maintenance(shoot, around, now)
        yield from _hibernation(shoot, now)


# --- deletion


def _deletion(shoot: Object, around: Around, now: datetime) -> Iterator[Finding]:
    managed = around.managed_seed
    if managed is not None:
        using = (Users(MANAGED_SEEDS, [managed]),)
        yield Finding(
            level=Level.BLOCKED if is_deleting(shoot) else Level.INFO,
            about="deletion",
            text=f"a Seed runs on it: a deletion is refused as long as ManagedSeed {managed} exists",
            remedy=f"to delete it, begin with: {command('delete', MANAGED_SEEDS, managed)}"
            if is_deleting(shoot)
            else "",
            users=using,
        )
    if not is_deleting(shoot):
        return
    begun, present = deletion_begun(shoot), finalizers(shoot)
    requested = "" if begun is None else f", requested at {when(begun, now)},"
    if not is_truthy(annotations(shoot).get(keys.CONFIRM_DELETION)):
        remedy = f"confirm it: {command('annotate', SHOOTS, key(shoot), f'{keys.CONFIRM_DELETION}=true')}"
        message = f"the deletion{requested} waits for a confirmation"
        yield Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy, at=begun)
    if keys.GARDENER_FINALIZER in present:
        yield _until_cluster_is_gone(shoot, around, requested, begun)
    elif keys.REFERENCE_PROTECTION in present:
        message = f"the deletion{requested} is about to end: its cluster is gone"
        remedy = "if it stays, see whether the controller manager runs"
        yield Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy, at=begun)
    known = {keys.GARDENER_FINALIZER, keys.REFERENCE_PROTECTION}
    yield from other_finalizers(SHOOTS, shoot, (name for name in present if name not in known))


def _until_cluster_is_gone(shoot: Object, around: Around, requested: str, begun: datetime | None) -> Finding:
    name, last = operation.seed_name(shoot), last_operation(shoot)
    lost = _is_lost(around)
    on = f"the gardenlet of Seed {name}" if name else "a gardenlet"
    message = f"the deletion{requested} waits for {on}{', which is lost,' if lost else ''} to remove the cluster"
    if last.get("type") == "Delete":
        message += f": {integer(last.get('progress'))} % done, {text(last.get('state')).lower()}"
    remedy = about_it(SEEDS, Key("", name)) if lost else ""
    return Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy, at=begun)


# --- its Seed


def _is_lost(around: Around) -> bool:
    return around.seed is not None and seeds.is_lost(around.seed)


def _lost(shoot: Object, around: Around) -> Iterator[Finding]:
    if around.seed is None or not _is_lost(around):
        return
    name = key(around.seed).name
    message = f"its Seed {name} is lost: nothing is done to it until the gardenlet is back, and its state is not known"
    level = Level.BLOCKED if operation.waits_for_gardenlet(shoot) else Level.PROBLEM
    yield Finding(level=level, about="seed", text=message, remedy=about_it(SEEDS, Key("", name)))


def _place(shoot: Object, around: Around, now: datetime) -> Iterator[Finding]:
    is_on, to_be = text(at(shoot, "status", "seedName")), text(spec(shoot).get("seedName"))
    if not to_be and not is_deleting(shoot):
        yield from _without_seed(shoot, around.decision, now)
    elif is_on and to_be and is_on != to_be:
        message = f"it moves from Seed {is_on} to {to_be}"
        yield Finding(level=Level.NEXT, about="seed", text=message)


def _without_seed(shoot: Object, decision: Decision | None, now: datetime) -> Iterator[Finding]:
    """Report what the scheduler reports; else what it would decide now.

    A Seed may pass all filters although the scheduler could not choose it: admission has refused the binding, or the
    Seed has changed since. Then only the report is shown.
    """
    other = "" if waits(shoot) else f" {text(spec(shoot).get('schedulerName'))}"
    message = f"it is on no Seed yet: it waits for the scheduler{other}"
    reported = one_line(last_operation(shoot).get("description"))
    fits = decision is not None and bool(decision.seed)
    level, remedy = Level.BLOCKED, f"see Events: {command('describe', SHOOTS, key(shoot))}"
    if reported:
        message += f", which reports: {reported}"
        if fits:
            remedy = f"remove that cause; it tries again by itself, within five minutes; {remedy}"
    elif decision is not None and fits:
        message += f", which can choose Seed {decision.seed}"
        if _is_new(shoot, now):
            level, remedy = Level.NEXT, ""
        else:
            remedy = f"see whether the scheduler runs; {remedy}"
    yield Finding(level=level, about="seed", text=message, remedy=remedy)
    if decision is not None and not fits:
        yield from _left_out(decision)


def _is_new(shoot: Object, now: datetime) -> bool:
    created = time_or_none(metadata(shoot).get("creationTimestamp"))
    return created is not None and now - created < seeds.LATE


def _left_out(decision: Decision) -> Iterator[Finding]:
    """Report why each Seed is left out; first those that passed the most filters."""
    order = list(Filter)
    excluded = sorted(decision.excluded.items(), key=lambda each: (-order.index(each[1].by), each[0]))
    for name, exclusion in excluded[:_MOST_SEEDS]:
        yield Finding(
            level=Level.BLOCKED,
            about=f"seed {exclusion.by}",
            text=f"Seed {name}: {exclusion.reason}",
            remedy=about_it(SEEDS, Key("", name)) if exclusion.by == Filter.USABLE else "",
        )
    if (more := len(excluded) - _MOST_SEEDS) > 0:
        yield Finding(level=Level.BLOCKED, about="seed", text=f"... and {more} more Seeds are left out")


def _pending(shoot: Object, now: datetime) -> Iterator[Finding]:
    """Report a change that has yet to be carried out."""
    observed, generation = at(shoot, "status", "observedGeneration"), metadata(shoot).get("generation")
    if is_deleting(shoot) or observed == generation:
        return
    seed = Key("", operation.seed_name(shoot))
    if observed is None:
        yield from _not_begun(shoot, now)
        return
    if at(shoot, "spec", "maintenance", "confineSpecUpdateRollout") is True and schedule.current(shoot, now) is None:
        begin = schedule.following(shoot, now).begin
        message = f"a change waits for the next maintenance window, at {when(begin, now)}"
        remedy = f"or now: {operation.commanded(shoot, keys.OPERATION_MAINTAIN)}"
        yield Finding(level=Level.BLOCKED, about="change", text=message, remedy=remedy, at=begin)
    elif last_operation(shoot).get("state") in {SUCCEEDED, None, _PENDING}:
        message = "a change waits for the gardenlet to take it up, at once or in its next maintenance window"
        remedy = f"now: {operation.commanded(shoot, keys.OPERATION_RECONCILE)}; if it stays: {about_it(SEEDS, seed)}"
        yield Finding(level=Level.BLOCKED, about="change", text=message, remedy=remedy)


def _not_begun(shoot: Object, now: datetime) -> Iterator[Finding]:
    """Report a Shoot that has a Seed, and nothing else."""
    name = text(spec(shoot).get("seedName"))
    if not name or last_operation(shoot).get("state") not in {None, _PENDING}:
        return
    created = since(metadata(shoot).get("creationTimestamp"), now)
    message = f"Seed {name} is chosen, but its gardenlet has not started its reconciliation; it exists{created}"
    is_new = _is_new(shoot, now)
    remedy = "" if is_new else about_it(SEEDS, Key("", name))
    yield Finding(level=Level.NEXT if is_new else Level.BLOCKED, about="operation", text=message, remedy=remedy)


# --- conditions and constraints


def _checks(shoot: Object, around: Around, now: datetime) -> Iterator[Finding]:
    """Report conditions and constraints that are not good.

    Those that only follow from something that is reported before are one finding: of a control plane that is built or
    removed, and of a Shoot whose Seed is lost.
    """
    remedy_of = checks.of_shoot(shoot)
    found = [
        *conditions(shoot, "constraints", now=now, about="constraint", remedy_of=remedy_of),
        *conditions(shoot, "conditions", now=now, remedy_of=remedy_of),
    ]
    under_way = operation.under_way(shoot, now)
    if found and (under_way in _WITHOUT_CONTROL_PLANE or _is_lost(around)):
        because = f"until {under_way} ends" if under_way in _WITHOUT_CONTROL_PLANE else "while its Seed is lost"
        names = ", ".join(each.text.partition(" ")[0] for each in found)
        yield Finding(level=Level.INFO, about=CONDITION, text=f"not known or not good {because}: {names}")
        return
    for each in found:
        # An operation that has begun may correct it.
        is_recent = under_way and each.at is not None and now - each.at < _LATE
        yield replace(each, level=Level.NEXT) if is_recent and each.level is Level.PROBLEM else each


# --- next events


def _expiration(shoot: Object, around: Around, now: datetime) -> Iterator[Finding]:
    try:
        ends = lifetimes.end(shoot)
    except ValueError as error:
        message = f"annotation {keys.SHOOT_EXPIRATION} is not a valid time: {error}"
        remedy = f"remove it: {command('annotate', SHOOTS, key(shoot), f'{keys.SHOOT_EXPIRATION}-')}"
        yield Finding(level=Level.PROBLEM, about="expiration", text=message, remedy=remedy)
        return
    allowed = lifetimes.lifetime(around.quotas)
    if ends is None:
        if allowed is None:
            return
        ends = time_or_none(lifetimes.first_end(shoot, allowed))
    if ends is None:
        return
    by = "" if allowed is None else f", by a Quota of {allowed.days} days"
    after = f"{keys.SHOOT_EXPIRATION}={format_time(ends + timedelta(days=1))}" if ends.year < 9999 else ""
    yield Finding(
        level=Level.PROBLEM if ends - now < _SOON else Level.NEXT,
        about="expiration",
        text=f"it is deleted at {when(ends, now)}{by}: {max(0, (ends - now).days)} days left",
        remedy=f"for a day more: {command('annotate', SHOOTS, key(shoot), after)}" if after else "",
        at=ends,
    )


def _maintenance(shoot: Object, around: Around, now: datetime) -> Iterator[Finding]:
    last = mapping_at(shoot, "status", "lastMaintenance")
    if last.get("state") == FAILED:
        message = f"the last one failed: {one_line(last.get('failureReason')) or one_line(last.get('description'))}"
        remedy = f"remove the cause, then: {operation.commanded(shoot, keys.OPERATION_MAINTAIN)}"
        yield Finding(level=Level.PROBLEM, about="maintenance", text=message, remedy=remedy)
    window = schedule.time_window(shoot)
    if not window:
        return
    is_due = schedule.is_due(shoot, now)
    begin = now if is_due else schedule.following(shoot, now).begin
    message = "is due now" if is_due else f"begins at {when(begin, now)}"
    drawn = None
    if around.profile is not None:
        drawn = plan(shoot, around.profile, now=begin, restarts=Restarts())
        message += _changes(drawn)
    remedy = "" if is_due else f"or now: {operation.commanded(shoot, keys.OPERATION_MAINTAIN)}"
    yield Finding(level=Level.NEXT, about="maintenance", text=message, remedy=remedy, at=begin)
    if drawn is not None and (failure := report.failure_reason(drawn)):
        only_images = all(update.succeeded for update in drawn.updates_of_kubernetes)
        remedy = "have the cloud profile offer versions that suit the Shoot, or choose others"
        message = f"{'machine images' if only_images else 'versions'} can't be maintained: {failure}"
        yield Finding(level=Level.PROBLEM, about="maintenance", text=message, remedy=remedy)


def _changes(drawn: Plan) -> str:
    found = [*report.descriptions(drawn), *drawn.texts]
    return f", and will report: {'; '.join(found)}" if found else ": no changes but for a reconciliation"


def _not_carried_out(
    shoot: Object, scheduled: Sequence[hibernation.Entry], *, sleeps: bool, now: datetime
) -> Iterator[Finding]:
    """Report requests of a schedule or the spec that were not carried out."""
    asleep = at(shoot, "status", "hibernated") is True
    do = {True: "go to sleep", False: "wake up"}
    due = hibernation.due(scheduled, after=hibernation.earliest(shoot, now=now, deadline=_MADE_UP_FOR), now=now - _LATE)
    if due is not None and due.hibernates is not sleeps:
        message = f"it had to {do[due.hibernates]} at {when(due.moment, now)} by its schedule, but did not"
        remedy = f"see whether the controller manager runs, or do it: {operation.hibernates(shoot, due.hibernates)}"
        yield Finding(level=Level.BLOCKED, about="hibernation", text=message, remedy=remedy, at=due.moment)
    is_soon = at(shoot, "status", "observedGeneration") is None or operation.under_way(shoot, now)
    if asleep is sleeps or is_soon:
        return
    message = f"it should {do[sleeps]}, but the gardenlet has not done it yet"
    hindering = constraint(shoot, HIBERNATION_POSSIBLE) or {}
    if sleeps and not hibernation.is_possible(shoot):
        message += f": {one_line(hindering.get('message')) or HIBERNATION_POSSIBLE}"
    name = operation.seed_name(shoot)
    remedy = about_it(SEEDS, Key("", name)) if name else ""
    yield Finding(level=Level.BLOCKED, about="hibernation", text=message, remedy=remedy)


def _hibernation(shoot: Object, now: datetime) -> Iterator[Finding]:
    try:
        scheduled = hibernation.entries(shoot)
    except ValueError as error:
        message = f"the schedules can't be followed: {error}"
        yield Finding(level=Level.PROBLEM, about="hibernation", text=message, remedy="correct that field")
        return
    sleeps = at(shoot, "spec", "hibernation", "enabled") is True
    yield from _not_carried_out(shoot, scheduled, sleeps=sleeps, now=now)
    following = hibernation.upcoming(scheduled, now=now)
    if following is None:
        if sleeps and at(shoot, "status", "hibernated") is True:
            message, remedy = (
                "it sleeps, and no schedule wakes it up",
                f"wake it up: {operation.hibernates(shoot, False)}",
            )
            yield Finding(level=Level.INFO, about="hibernation", text=message, remedy=remedy)
        return
    verb = "goes to sleep" if following.hibernates else "wakes up"
    asleep = at(shoot, "status", "hibernated") is True
    state = "it sleeps" if asleep else "it is awake"
    idle = ", which changes nothing" if following.hibernates is sleeps else ""
    message = f"{state}, and {verb} at {when(following.moment, now)} by its schedule{idle}"
    yield Finding(level=Level.NEXT, about="hibernation", text=message, at=following.moment)
