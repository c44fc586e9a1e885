"""A replica of a ManagedSeedSet: a Shoot, its ManagedSeed and its Seed, all of one name, and how far they are.

A replica exists as long as its Shoot does. The others are found by its name, whatever labels they have: a Seed that
nobody finds looks like one that nobody uses.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from gardener import conditions, keys
from gardener.garden.shoots import FAILED, SUCCEEDED, is_current, last_operation
from kube.objects import Object, annotations, condition, is_deleting, labels, metadata, text

REVISION_LABEL = "controller-revision-hash"
DEFAULT_PRIORITY = 3

_ORDINAL = re.compile(r".*-(0|[1-9][0-9]{0,9})")
_MOST = 2**31 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")


def name_of(set_name: str, ordinal: int) -> str:
    return f"{set_name}-{ordinal}"


def ordinal_of(name: str) -> int:
    """The number at the end of the name of a replica; -1: it has none."""
    found = _ORDINAL.fullmatch(name)
    ordinal = int(found.group(1)) if found else -1
    return ordinal if ordinal <= _MOST else -1


def next_ordinal(next_number: int, names: Iterable[str]) -> int:
    """The number of the next replica: never one that was given before, even if the status got lost."""
    return max([next_number, *(ordinal_of(name) + 1 for name in names)])


class State(IntEnum):
    """How far a replica is. Of several, that with the lowest state is removed first."""

    SHOOT_RECONCILE_FAILED = 1
    SHOOT_DELETE_FAILED = 2
    SHOOT_RECONCILING = 3
    SHOOT_DELETING = 4
    SHOOT_RECONCILED = 5
    MANAGED_SEED_PREPARING = 6
    MANAGED_SEED_DELETING = 7
    MANAGED_SEED_REGISTERED = 8


class Health(IntEnum):
    """What the label of the Shoot says."""

    UNHEALTHY = 0
    UNKNOWN = 1
    PROGRESSING = 2
    HEALTHY = 3


def shoot_state(shoot: Object) -> State:
    """Of a Shoot alone. One that is to be retried counts as under way until somebody has begun with that."""
    is_going = is_deleting(shoot)
    kind, outcome = (text(last_operation(shoot).get(field)) for field in ("type", "state"))
    is_about_this = is_current(shoot) and (kind == "Delete" if is_going else kind in {"Create", "Reconcile"})
    if is_about_this and outcome == SUCCEEDED and not is_going:
        return State.SHOOT_RECONCILED
    if is_about_this and outcome == FAILED and annotations(shoot).get(keys.OPERATION) != keys.OPERATION_RETRY:
        return State.SHOOT_DELETE_FAILED if is_going else State.SHOOT_RECONCILE_FAILED
    return State.SHOOT_DELETING if is_going else State.SHOOT_RECONCILING


def managed_seed_state(managed_seed: Object) -> State:
    if is_deleting(managed_seed):
        return State.MANAGED_SEED_DELETING
    if is_current(managed_seed) and _is_true(managed_seed, conditions.SEED_REGISTERED):
        return State.MANAGED_SEED_REGISTERED
    return State.MANAGED_SEED_PREPARING


def is_seed_ready(seed: Object | None) -> bool:
    if seed is None or is_deleting(seed) or not is_current(seed):
        return False
    if condition(seed, conditions.BACKUP_BUCKETS_READY) is not None and not _is_true(
        seed, conditions.BACKUP_BUCKETS_READY
    ):
        return False
    return _is_true(seed, conditions.GARDENLET_READY) and _is_true(seed, conditions.SEED_SYSTEM_COMPONENTS_HEALTHY)


def health_of(shoot: Object) -> Health:
    """No label: nobody has looked yet."""
    said = labels(shoot).get(keys.SHOOT_STATUS, Health.PROGRESSING.name.lower())
    return next((health for health in Health if health.name.lower() == said), Health.UNKNOWN)


def _is_true(obj: Object, condition_type: str) -> bool:
    found = condition(obj, condition_type)
    return found is not None and found.get("status") == "True"


def priority_of(obj: Object) -> int | None:
    """What the annotation says. None: there is none; raises ValueError: it is no number."""
    said = annotations(obj).get(keys.SEED_SET_PRIORITY)
    if said is None:
        return None
    if not _NUMBER.fullmatch(said) or not -_MOST - 1 <= int(said) <= _MOST:
        raise ValueError(f'annotation {keys.SEED_SET_PRIORITY} must be a number of 32 bits, not "{said}"')
    return int(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    shoot: Object
    managed_seed: Object | None = None
    seed: Object | None = None

    @property
    def name(self) -> str:
        return text(metadata(self.shoot).get("name"))

    @property
    def ordinal(self) -> int:
        return ordinal_of(self.name)

    @property
    def state(self) -> State:
        return shoot_state(self.shoot) if self.managed_seed is None else managed_seed_state(self.managed_seed)

    @property
    def is_seed_ready(self) -> bool:
        return is_seed_ready(self.seed)

    @property
    def health(self) -> Health:
        return health_of(self.shoot)

    @property
    def is_ready(self) -> bool:
        return self.state is State.MANAGED_SEED_REGISTERED and self.is_seed_ready and self.health is Health.HEALTHY

    @property
    def is_going(self) -> bool:
        return any(is_deleting(each) for each in self._own)

    @property
    def is_protected(self) -> bool:
        return any(annotations(each).get(keys.PROTECT_FROM_DELETION) == "true" for each in self._own)

    @property
    def priority(self) -> int:
        """Lower ones are removed first. The ManagedSeed's counts, else that of the Shoot."""
        for each in reversed(self._own):
            try:
                said = priority_of(each)
            except ValueError:
                return DEFAULT_PRIORITY
            if said is not None:
                return said
        return DEFAULT_PRIORITY

    @property
    def revisions(self) -> tuple[str, ...]:
        """Of the Shoot, and of the ManagedSeed if there is one: the revision that it was made from, or is empty."""
        return tuple(labels(each).get(REVISION_LABEL, "") for each in self._own)

    @property
    def _own(self) -> list[Object]:
        return [each for each in (self.shoot, self.managed_seed) if each is not None]


def removal_order(replica: Replica) -> tuple[bool, int, int, bool, int, int]:
    """A key to sort by: what is removed first comes first.

    One that is going already comes before all: of two replicas that go where one is to go, one would have to be made
    anew.
    """
    return (
        not replica.is_going,
        replica.priority,
        replica.state,
        replica.is_seed_ready,
        replica.health,
        replica.ordinal,
    )
