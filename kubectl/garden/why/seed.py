"""Findings about a Seed: whether its gardenlet is active, its problems, and what its deletion waits for."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gardener import conditions as types
from gardener import keys
from gardener.api.garden import CONTROLLER_INSTALLATIONS, SEEDS, SHOOTS
from gardener.garden.seeds import LEASE_NAMESPACE
from kube.clock import time_or_none
from kube.objects import Object, condition, finalizers, is_deleting, key, mappings, spec
from kube.paths import at
from kube.resources import Resource
from kubectl.garden.why import checks
from kubectl.garden.why.finding import (
    Finding,
    Level,
    Users,
    about_it,
    command,
    conditions,
    deletion_begun,
    other_finalizers,
    together,
    when,
)

LATE = timedelta(minutes=1)
"""Tolerated silence: gardenlets renew their Leases every few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Surroundings of a Seed."""

    lease: Object | None = None
    """None if it does not exist."""
    is_lease_known: bool = True
    """Whether its existence could be checked."""
    users: Sequence[Users] = ()


def is_lost(seed: Object) -> bool:
    return (condition(seed, types.GARDENLET_READY) or {}).get("status") == "Unknown"


def findings(seed: Object, around: Around, *, now: datetime) -> Iterator[Finding]:
    using = [each for each in around.users if each.keys]
    if is_deleting(seed):
        yield from _deletion(seed, using, now)
    yield from conditions(seed, "conditions", now=now, remedy_of=checks.of_seed)
    if not mappings(at(seed, "status", "conditions")):
        message = "no conditions yet: neither the gardenlet nor the controller manager has reported on it"
        remedy = "install the gardenlet, and see whether it reaches the garden"
        yield Finding(level=Level.PROBLEM, about="condition", text=message, remedy=remedy)
    if around.is_lease_known:
        yield _heartbeat(seed, around.lease, now)
    if using and not is_deleting(seed):
        yield Finding(level=Level.INFO, about="users", text=_used(using), users=using)


def _heartbeat(seed: Object, lease: Object | None, now: datetime) -> Finding:
    renewed = time_or_none(spec(lease or {}).get("renewTime"))
    if renewed is None:
        message = f"the gardenlet has never renewed the Lease {LEASE_NAMESPACE}/{key(seed).name}"
        remedy = checks.GARDENLET
        return Finding(level=Level.PROBLEM, about="heartbeat", text=message, remedy=remedy)
    is_late = now - renewed > LATE
    return Finding(
        level=Level.PROBLEM if is_late else Level.INFO,
        about="heartbeat",
        text=f"the last heartbeat of the gardenlet was at {when(renewed, now)}",
        remedy=checks.GARDENLET if is_late else "",
        at=renewed,
    )


def _used(using: Iterable[Users]) -> str:
    found = list(using)
    refused = any(each.resource == SHOOTS for each in found)
    effect = "a deletion is refused while it has Shoots" if refused else "a deletion would wait"
    return f"in use ({effect}): {together(found)}"


# --- deletion


def _deletion(seed: Object, using: Sequence[Users], now: datetime) -> Iterator[Finding]:
    begun, present = deletion_begun(seed), finalizers(seed)
    requested = "" if begun is None else f", requested at {when(begun, now)},"
    for users in using:
        yield Finding(
            level=Level.BLOCKED,
            about="deletion",
            text=f"the deletion{requested} waits for {users}",
            remedy=_remedy(users.resource, users),
            at=begun,
            users=(users,),
        )
    if not using and keys.GARDENER_FINALIZER in present:
        lost = ", which is lost" if is_lost(seed) else ""
        message = f"the deletion{requested} waits for the gardenlet{lost}: it removes its objects from the Seed"
        remedy = checks.GARDENLET if lost else f"see Events: {command('describe', SEEDS, key(seed))}"
        yield Finding(level=Level.BLOCKED, about="deletion", text=message, remedy=remedy, at=begun)
    known = {keys.GARDENER_FINALIZER, keys.REGISTRATION_FINALIZER}
    yield from other_finalizers(SEEDS, seed, (name for name in present if name not in known))


def _remedy(resource: Resource, users: Users) -> str:
    first = users.keys[0]
    if resource == SHOOTS:
        return f"delete them, or move them to another Seed; begin with: {about_it(SHOOTS, first)}"
    if resource == CONTROLLER_INSTALLATIONS:
        message = "they go when no extension is needed any more, and the gardenlet has removed it"
        return f"{message}; see conditions: {command('describe', resource, first)}"
    return f"they go with the Shoots whose backups they hold: {command('describe', resource, first)}"
