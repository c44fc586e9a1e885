"""Findings about kinds that one program works on: ManagedSeeds and their sets, backups, installations, bastions.

Their common parts are shown: conditions, the last operation, the finalizers, the Seed whose gardenlet does
the work. Kinds without any of them have no findings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gardener import keys
from gardener.api.garden import (
    BACKUP_BUCKETS,
    BACKUP_ENTRIES,
    BASTIONS,
    CONTROLLER_INSTALLATIONS,
    GARDENLETS,
    MANAGED_SEED_SETS,
    MANAGED_SEEDS,
    SEEDS,
    SHOOTS,
)
from gardener.conditions import PROGRESSING, REQUIRED
from gardener.garden.managed_seed_sets import Pending
from kube.clock import time_or_none
from kube.objects import Key, Object, finalizers, integer, is_deleting, key, mapping, metadata, spec, text
from kube.paths import at, mapping_at, mappings_at
from kube.resources import Resource
from kubectl.garden.why import seed as seeds
from kubectl.garden.why.finding import (
    Finding,
    Level,
    about_it,
    command,
    conditions,
    deletion_begun,
    one_line,
    other_finalizers,
    since,
    when,
)

OF_GARDENLETS = frozenset(
    {BACKUP_BUCKETS, BACKUP_ENTRIES, BASTIONS, CONTROLLER_INSTALLATIONS, GARDENLETS, MANAGED_SEEDS}
)
"""Kinds that a gardenlet works on; on others, the controller manager does."""
_FAILED, _ERROR, _SUCCEEDED = "Failed", "Error", "Succeeded"
_GOOD_IF_FALSE = {PROGRESSING: Level.NEXT, "ScalingLimited": Level.INFO}


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    seed_name: str = ""
    """Name of the Seed whose gardenlet works on it."""
    seed: Object | None = None
    """None if it does not exist, or could not be read."""
    missing: Sequence[tuple[Resource, Key]] = ()
    """Objects that it names, and that do not exist."""


def seed_name_of(resource: Resource, obj: Object) -> str:
    """Name of the Seed, if the object itself states it."""
    if resource == GARDENLETS:
        return key(obj).name
    return text(spec(obj).get("seedName")) or text(mapping_at(obj, "spec", "seedRef").get("name"))


def named_by(resource: Resource, obj: Object) -> list[tuple[Resource, Key]]:
    """Objects that it depends on."""
    own = key(obj)
    if resource == MANAGED_SEEDS:
        return [(SHOOTS, Key(own.namespace, text(at(obj, "spec", "shoot", "name"))))]
    if resource == BASTIONS:
        return [(SHOOTS, Key(own.namespace, text(at(obj, "spec", "shootRef", "name"))))]
    if resource in {BACKUP_BUCKETS, BACKUP_ENTRIES, CONTROLLER_INSTALLATIONS} and (name := seed_name_of(resource, obj)):
        return [(SEEDS, Key("", name))]
    return []


def findings(resource: Resource, obj: Object, around: Around, *, now: datetime) -> Iterator[Finding]:
    worker = _worker(resource, around)
    if is_deleting(obj):
        yield from _deletion(resource, obj, worker, around, now)
    for missing, name in around.missing:
        message = f"its {missing.kind} {name} does not exist"
        where = f" -n {name.namespace}" if name.namespace else ""
        remedy = f"see those that exist: kubectl get {missing.plural}{where}"
        yield Finding(level=Level.PROBLEM, about="reference", text=message, remedy=remedy)
    if around.seed is not None and seeds.is_lost(around.seed):
        message = f"the Seed {around.seed_name} is lost: nothing is done to it until the gardenlet is back"
        remedy = about_it(SEEDS, Key("", around.seed_name))
        yield Finding(level=Level.PROBLEM, about="seed", text=message, remedy=remedy)
    yield from _operation(obj, now)
    if not is_deleting(obj):
        yield from _pending(resource, obj, worker)
    if resource == MANAGED_SEED_SETS:
        yield from _replicas(obj, now)
    yield from conditions(obj, "conditions", now=now, good_if_false=_GOOD_IF_FALSE, of_no_interest={REQUIRED})
    expires = time_or_none(at(obj, "status", "expirationTimestamp"))
    if expires is not None and not is_deleting(obj):
        yield Finding(level=Level.NEXT, about="expiration", text=f"it is deleted at {when(expires, now)}", at=expires)


def _worker(resource: Resource, around: Around) -> str:
    if resource not in OF_GARDENLETS:
        return "the controller manager"
    return f"the gardenlet of Seed {around.seed_name}" if around.seed_name else "a gardenlet"


def _deletion(resource: Resource, obj: Object, worker: str, around: Around, now: datetime) -> Iterator[Finding]:
    begun, present = deletion_begun(obj), finalizers(obj)
    requested = "" if begun is None else f", requested at {when(begun, now)},"
    own = [name for name in present if name == keys.GARDENER_FINALIZER or name.startswith("core.gardener.cloud/")]
    if own:
        remedy = about_it(SEEDS, Key("", around.seed_name)) if around.seed_name else "see whether it runs"
        message = f"the deletion{requested} waits for {worker}"
        yield Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy, at=begun)
    yield from other_finalizers(resource, obj, (name for name in present if name not in own))


def _operation(obj: Object, now: datetime) -> Iterator[Finding]:
    last = mapping_at(obj, "status", "lastOperation")
    state, kind = text(last.get("state")), text(last.get("type"))
    errors = [*mappings_at(obj, "status", "lastErrors"), mapping_at(obj, "status", "lastError")]
    causes = [one_line(each.get("description")) for each in errors if each]
    if state in {_FAILED, _ERROR} or causes:
        message = f"{kind or 'the last operation'} failed{since(last.get('lastUpdateTime'), now)}"
        reason = "; ".join(causes) or one_line(last.get("description"))
        yield Finding(level=Level.PROBLEM, about="operation", text=f"{message}: {reason}".rstrip(": "))
    elif last and state != _SUCCEEDED:
        message = f"{kind} is {state.lower()}, {integer(last.get('progress'))} %: {one_line(last.get('description'))}"
        yield Finding(level=Level.NEXT, about="operation", text=message.rstrip(": "))


def _pending(resource: Resource, obj: Object, worker: str) -> Iterator[Finding]:
    """Report a change that has yet to be carried out, according to the observed generation."""
    status, generation = mapping(obj.get("status")), metadata(obj).get("generation")
    observed = status.get("observedGeneration")
    if resource in OF_GARDENLETS and not status:
        message = f"{worker} has not started its reconciliation"
    elif None not in {observed, generation} and observed != generation:
        message = f"a change waits for {worker} to take it up"
    else:
        return
    remedy = f"if it stays so, see whether it runs; Events: {command('describe', resource, key(obj))}"
    yield Finding(level=Level.BLOCKED, about="change", text=message, remedy=remedy)


def _replicas(seed_set: Object, now: datetime) -> Iterator[Finding]:
    status, wanted = mapping(seed_set.get("status")), integer(spec(seed_set).get("replicas", 1))
    own = key(seed_set)
    pending = Pending.of(status)
    if pending is not None:
        replica = Key(own.namespace, pending.name)
        tried = f", tried again {pending.retries} times" if pending.retries else ""
        yield Finding(
            level=Level.BLOCKED,
            about="replica",
            text=f"replica {pending.name}: {pending.reason} since {when(pending.since, now)}{tried}",
            remedy=f"{about_it(SHOOTS, replica)}; {about_it(MANAGED_SEEDS, replica)}",
            at=pending.since,
        )
    there, ready = (integer(status.get(field)) for field in ("replicas", "readyReplicas"))
    is_good = there == ready == wanted
    yield Finding(
        level=Level.INFO if is_good else Level.PROBLEM,
        about="replicas",
        text=f"{there} of {wanted} replicas are there, {ready} are ready",
        remedy="" if is_good else f"kubectl mss status {own.name} -n {own.namespace}",
    )
