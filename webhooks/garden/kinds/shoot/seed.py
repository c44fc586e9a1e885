"""Seed of a Shoot, chosen by the scheduler or by a user with the right to it.

Reads `SEEDS`, `SHOOTS`, `PROJECTS`, and the kinds that `profile` reads.
"""

from collections.abc import Iterator
from typing import Any

from gardener import keys
from gardener.api.garden import SEEDS, SHOOTS
from gardener.garden.scheduling import allocatable_shoots, taints_of, tolerates
from gardener.garden.shoots import is_settled, last_operation, obstacle_to_move, selectors_of_users
from kube.objects import (
    Key,
    Object,
    annotations,
    finalizers,
    is_deleting,
    is_truthy,
    labels,
    mappings,
    matches_label_selector,
    metadata,
    spec,
    text,
    texts,
)
from kube.paths import at, mapping_at
from kube.validation import forbidden
from webhooks.garden.common import metadata as metadata_rules
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.references import exists
from webhooks.garden.common.write import Limit, Right, Write
from webhooks.garden.kinds.shoot.profile import profile_of
from webhooks.garden.shoot_spec.fields import project_of, seed_name, status

SEED_NAME = "spec.seedName"
_PROTECTED_FINALIZERS = (keys.GARDENER_FINALIZER, keys.REFERENCE_PROTECTION)
_ZONES_OF_HA = 3


def _is_newly_bound(write: Write) -> bool:
    return write.spec.get("seedName") not in {None, "", write.old_spec.get("seedName")} and not is_return(write)


def is_return(write: Write) -> bool:
    """Whether the change takes a move back: the Shoot stays on the Seed that has it, or returns there."""
    present = text(status(write.old).get("seedName"))
    return bool(present) and seed_name(write.old) != present == text(write.spec.get("seedName"))


def seed_errors(write: Write) -> Iterator[Finding]:
    """The Seed takes the Shoot."""
    name = write.spec.get("seedName")
    if not name:
        return
    yield from exists(write.garden, SEED_NAME, SEEDS, name)
    seed = write.garden.get(SEEDS, name)
    if seed is None or not _is_newly_bound(write):
        return
    for reason in _reasons(write, seed):
        yield Denial(reason, SEED_NAME)


def _reasons(write: Write, seed: Object) -> Iterator[str]:
    name = text(metadata(seed).get("name"))
    refused = f"cannot schedule shoot '{write.name}' on seed '{name}'"
    if is_deleting(seed):
        yield f"{refused} that is already marked for deletion"
    if is_truthy(annotations(seed).get(keys.CORDONED)):
        yield f"{refused} that is cordoned"
    if not tolerates(mappings(write.spec.get("tolerations")), taints_of(seed)):
        yield "forbidden to use a seed whose taints are not tolerated by the shoot"
    selector = mapping_at(profile_of(write, write.spec) or {}, "seedSelector")
    if not _matches(selector, seed):
        yield f"{refused} because the cloud profile seed selector is not matching the labels of the seed"
    types = texts(selector.get("providerTypes"))
    if types and not {"*", text(at(spec(seed), "provider", "type"))} & set(types):
        yield (
            f"{refused} because none of the provider types in the cloud profile seed selector is matching the provider"
            " type of the seed"
        )
    zones = texts(at(spec(seed), "provider", "zones"))
    tolerance = at(write.spec, "controlPlane", "highAvailability", "failureTolerance", "type")
    if tolerance == "zone" and len(zones) < _ZONES_OF_HA:
        yield (
            f"cannot schedule shoot '{write.name}' with failure tolerance of zone on seed '{name}' with only"
            f" {len(zones)} zones, at least {_ZONES_OF_HA} zones are required"
        )


def _matches(selector: Object, seed: Object) -> bool:
    try:
        return matches_label_selector(selector, labels(seed))
    except ValueError:
        return False


def capacity(write: Write) -> Iterator[Limit]:
    """The Seed has room for one more Shoot. Those that leave it are still on it."""
    if not _is_newly_bound(write):
        return
    name = text(write.spec.get("seedName"))
    seed = write.garden.get(SEEDS, name)
    room = allocatable_shoots(seed) if seed is not None else None
    if room is not None:
        yield Limit(
            resource=SHOOTS,
            field_selectors=selectors_of_users(name),
            own=Key(write.namespace, write.name),
            most=room - 1,
            denial=(
                f"cannot schedule shoot '{write.name}' on seed '{name}' that already has the maximum number of"
                f" shoots scheduled on it ({room})"
            ),
            path=SEED_NAME,
        )


def binding_right(write: Write) -> Iterator[Right]:
    """Rule for `rights`: setting the Seed needs the right to update `shoots/binding`, at whatever path."""
    if write.spec.get("seedName") != write.old_spec.get("seedName"):
        yield Right(
            verb="update",
            resource=SHOOTS,
            subresource="binding",
            namespace=write.namespace,
            name=write.name,
            denial=f'user "{write.user.name}" is not allowed to set .spec.seedName for "{SHOOTS.plural}"',
        )


# --- changes


def seed_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: leaving a Seed, moving to another, and fields that must not change meanwhile."""
    before, now = seed_name(write.old), text(write.spec.get("seedName"))
    if before and not now:
        yield Denial(f"{SEED_NAME} is already set to '{before}' and cannot be changed to 'nil'", SEED_NAME)
    if now and before != now:
        if before and not is_return(write):
            yield from _backups(write, before, now)
            if obstacle := _obstacle(write):
                yield Denial(f"cannot change {SEED_NAME} of shoot '{write.name}': {obstacle}", SEED_NAME)
        if _changes_more(write, is_move=bool(before)):
            yield Denial(f"nothing else in spec may change together with {SEED_NAME}", SEED_NAME)
    yield from _frozen(write)


def _backups(write: Write, before: str, now: str) -> Iterator[Finding]:
    for name, which in ((before, "old seed"), (now, "seed")):
        seed = write.garden.get(SEEDS, name)
        if seed is not None and not spec(seed).get("backup"):
            text_ = f'cannot change seed name because backup is not configured for {which} "{name}"'
            yield Denial(text_, SEED_NAME)


def _obstacle(write: Write) -> str:
    """Reason why no move can begin. One that is under way may change its destination, as may a Shoot of which no
    gardenlet has made anything.
    """
    before = status(write.old)
    has_cluster = bool(before.get("seedName") and before.get("technicalID"))
    return obstacle_to_move(write.old) if has_cluster and is_settled(write.old) else ""


def _changes_more(write: Write, *, is_move: bool) -> bool:
    """Whether more than the Seed changes. Values that admission fills in because of the first Seed do not count."""
    new, old = _without_seed(write.spec), _without_seed(write.old_spec)
    return new != old if is_move else not _holds(new, old)


def _holds(new: Any, old: Any) -> bool:
    """Whether the new value contains all of the old one; additions are permitted."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(field in new and _holds(new[field], value) for field, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(new) >= len(old) and all(map(_holds, new, old))
    return bool(new == old)


def _without_seed(shoot_spec: Object) -> Object:
    return {**shoot_spec, "seedName": None}


def frozen_in_deletion(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: the spec is immutable in deletion, but a move that hinders it can be taken back."""
    if not is_return(write) or _changes_more(write, is_move=True):
        yield from metadata_rules.frozen_in_deletion(write)


def is_frozen(write: Write) -> bool:
    """Whether changes of the spec are refused for now, regardless of the user."""
    return any(_freezes(write))


def _frozen(write: Write) -> Iterator[Finding]:
    reasons = list(_freezes(write))
    if reasons and not write.is_deleting and _without_seed(write.spec) != _without_seed(write.old_spec):
        yield from (Denial(reason, "spec") for reason in reasons)


def _freezes(write: Write) -> Iterator[str]:
    if reason := _moving(write.old):
        yield reason
    seed = seed_name(write.old)
    found = write.garden.get(SEEDS, seed) if seed else None
    if found is not None and is_deleting(found):
        yield f"cannot update shoot '{write.name}' on seed '{seed}' already marked for deletion"


def _moving(shoot: Object) -> str | None:
    """Return the reason why nothing may change while the control plane moves."""
    wanted, actual = seed_name(shoot), text(status(shoot).get("seedName"))
    if wanted and actual and wanted != actual:
        return "shoot spec cannot be changed because shoot has been rescheduled to a new seed"
    operation = last_operation(shoot)
    kind, state = text(operation.get("type")), text(operation.get("state"))
    if kind == "Migrate" or (kind == "Restore" and state != "Succeeded"):
        return f"cannot change shoot spec during {kind} operation that is in state {state}"
    return None


def annotation_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: on a Seed in deletion, only the deletion of the Shoot can be confirmed."""
    seed = write.garden.get(SEEDS, seed_name(write.old)) if seed_name(write.old) else None
    if seed is None or not is_deleting(seed) or write.is_deleting:
        return
    before, now = annotations(write.old), annotations(write.new)
    free = {keys.CONFIRM_DELETION, keys.DELETION_CONFIRMED_BY}
    if {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)} - free:
        yield Denial(
            f"cannot change annotations of a shoot on seed '{seed_name(write.old)}' in deletion, but its confirmation"
        )


def finalizer_errors(write: Write) -> Iterator[Finding]:
    """Rule for `checks`: finalizers of controllers cannot exist on creation."""
    if write.is_create:
        for index, name in enumerate(finalizers(write.new)):
            if name in _PROTECTED_FINALIZERS:
                yield forbidden(f"metadata.finalizers[{index}]", f'finalizer "{name}" cannot be added on creation')


def finalizer_changes(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: the finalizer is removed after everything of the cluster."""
    operation = last_operation(write.old)
    own = keys.GARDENER_FINALIZER
    gone = own in finalizers(write.old) and own not in finalizers(write.new)
    done = (operation.get("type"), operation.get("state"), operation.get("progress")) == ("Delete", "Succeeded", 100)
    if gone and status(write.old).get("technicalID") and operation and not done:
        reason = "because shoot deletion has not completed successfully yet"
        yield Denial(f'finalizer "{own}" cannot be removed {reason}', "metadata.finalizers")


def project_in_deletion(write: Write) -> Iterator[Finding]:
    """The project is not being deleted."""
    project = project_of(write) if write.is_create else None
    if project is not None and is_deleting(project):
        name = text(metadata(project).get("name"))
        yield Denial(f"cannot create shoot '{write.name}' in project '{name}' that is already marked for deletion")
