"""ManagedSeedSets: their replicas, the Shoots that belong to them, the pending replica, and their revisions.

A replica is a Shoot, its ManagedSeed and its Seed, all of one name. It exists as long as its Shoot does. The others are
found by name, regardless of labels: a Seed that is missed would count as unused.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum, StrEnum

from gardener import conditions, keys
from gardener.garden.shoots import FAILED, SUCCEEDED, is_current, last_operation
from kube.clock import format_time, parse_time
from kube.objects import (
    Object,
    annotations,
    condition,
    controller_of,
    integer,
    is_deleting,
    key,
    labels,
    mapping,
    matches_label_selector,
    metadata,
    spec,
    text,
    uid,
)
from kube.paths import mapping_at

REVISION_LABEL = "controller-revision-hash"
DEFAULT_PRIORITY = 3

_ORDINAL = re.compile(r".*-(0|[1-9][0-9]{0,9})")
_MOST = 2**31 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")


def name_of(set_name: str, ordinal: int) -> str:
    return f"{set_name}-{ordinal}"


def ordinal_of(name: str) -> int:
    """The number at the end of the name of a replica; -1 if it has none."""
    found = _ORDINAL.fullmatch(name)
    ordinal = int(found.group(1)) if found else -1
    return ordinal if ordinal <= _MOST else -1


def next_ordinal(next_number: int, names: Iterable[str]) -> int:
    """The number of the next replica: never one that was used before, even if the status got lost."""
    return max([next_number, *(ordinal_of(name) + 1 for name in names)])


class ReplicaState(IntEnum):
    """Progress of a replica. The one with the lowest state is removed first."""

    SHOOT_RECONCILE_FAILED = 1
    SHOOT_DELETE_FAILED = 2
    SHOOT_RECONCILING = 3
    SHOOT_DELETING = 4
    SHOOT_RECONCILED = 5
    MANAGED_SEED_PREPARING = 6
    MANAGED_SEED_DELETING = 7
    MANAGED_SEED_REGISTERED = 8


class ShootHealth(IntEnum):
    """Health from the label of the Shoot."""

    UNHEALTHY = 0
    UNKNOWN = 1
    PROGRESSING = 2
    HEALTHY = 3


def shoot_state(shoot: Object) -> ReplicaState:
    """State of a Shoot alone. A Shoot with a requested retry is in progress until the retry starts."""
    is_going = is_deleting(shoot)
    kind, outcome = (text(last_operation(shoot).get(field)) for field in ("type", "state"))
    is_about_this = is_current(shoot) and (kind == "Delete" if is_going else kind in {"Create", "Reconcile"})
    if is_about_this and outcome == SUCCEEDED and not is_going:
        return ReplicaState.SHOOT_RECONCILED
    if is_about_this and outcome == FAILED and annotations(shoot).get(keys.OPERATION) != keys.OPERATION_RETRY:
        return ReplicaState.SHOOT_DELETE_FAILED if is_going else ReplicaState.SHOOT_RECONCILE_FAILED
    return ReplicaState.SHOOT_DELETING if is_going else ReplicaState.SHOOT_RECONCILING


def managed_seed_state(managed_seed: Object) -> ReplicaState:
    if is_deleting(managed_seed):
        return ReplicaState.MANAGED_SEED_DELETING
    if is_current(managed_seed) and _is_true(managed_seed, conditions.SEED_REGISTERED):
        return ReplicaState.MANAGED_SEED_REGISTERED
    return ReplicaState.MANAGED_SEED_PREPARING


def is_seed_ready(seed: Object | None) -> bool:
    if seed is None or is_deleting(seed) or not is_current(seed):
        return False
    if condition(seed, conditions.BACKUP_BUCKETS_READY) is not None and not _is_true(
        seed, conditions.BACKUP_BUCKETS_READY
    ):
        return False
    return _is_true(seed, conditions.GARDENLET_READY) and _is_true(seed, conditions.SEED_SYSTEM_COMPONENTS_HEALTHY)


def health_of(shoot: Object) -> ShootHealth:
    """Health of a Shoot; PROGRESSING without the label, which its controller has not set yet."""
    reported = labels(shoot).get(keys.SHOOT_STATUS, ShootHealth.PROGRESSING.name.lower())
    return next((health for health in ShootHealth if health.name.lower() == reported), ShootHealth.UNKNOWN)


def _is_true(obj: Object, condition_type: str) -> bool:
    found = condition(obj, condition_type)
    return found is not None and found.get("status") == "True"


def priority_of(obj: Object) -> int | None:
    """Priority in the annotation; None if there is none.

    Raises:
        ValueError: its value is not a 32 bit number.
    """
    reported = annotations(obj).get(keys.SEED_SET_PRIORITY)
    if reported is None:
        return None
    if not _NUMBER.fullmatch(reported) or not -_MOST - 1 <= int(reported) <= _MOST:
        raise ValueError(f'annotation {keys.SEED_SET_PRIORITY} must be a number of 32 bits, not "{reported}"')
    return int(reported)


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
    def state(self) -> ReplicaState:
        return shoot_state(self.shoot) if self.managed_seed is None else managed_seed_state(self.managed_seed)

    @property
    def is_seed_ready(self) -> bool:
        return is_seed_ready(self.seed)

    @property
    def health(self) -> ShootHealth:
        return health_of(self.shoot)

    @property
    def is_ready(self) -> bool:
        return (
            self.state is ReplicaState.MANAGED_SEED_REGISTERED
            and self.is_seed_ready
            and self.health is ShootHealth.HEALTHY
        )

    @property
    def is_going(self) -> bool:
        return any(is_deleting(each) for each in self._own)

    @property
    def is_protected(self) -> bool:
        return any(annotations(each).get(keys.PROTECT_FROM_DELETION) == "true" for each in self._own)

    @property
    def priority(self) -> int:
        """Priority of the ManagedSeed, or else of the Shoot; the lowest is removed first."""
        for each in reversed(self._own):
            try:
                reported = priority_of(each)
            except ValueError:
                return DEFAULT_PRIORITY
            if reported is not None:
                return reported
        return DEFAULT_PRIORITY

    @property
    def revisions(self) -> tuple[str, ...]:
        """Revisions that the Shoot, and the ManagedSeed if there is one, were created from; empty if unknown."""
        return tuple(labels(each).get(REVISION_LABEL, "") for each in self._own)

    @property
    def _own(self) -> list[Object]:
        return [each for each in (self.shoot, self.managed_seed) if each is not None]


def removal_order(replica: Replica) -> tuple[bool, int, int, bool, int, int]:
    """Sort key for removal; the first replica is removed first.

    A replica that is being deleted comes first: otherwise a second one would be deleted, and one of them recreated.
    """
    return (
        not replica.is_going,
        replica.priority,
        replica.state,
        replica.is_seed_ready,
        replica.health,
        replica.ordinal,
    )


# --- replicas among Shoots


@dataclass(frozen=True, slots=True)
class Membership:
    """The Shoots that the selector of a set matches."""

    owned: list[Object] = field(default_factory=list)
    adoptable: list[Object] = field(default_factory=list)
    """Shoots without a controller, and with a name of the set."""
    foreign: list[Object] = field(default_factory=list)


def membership_of(seed_set: Object, shoots: Iterable[Object]) -> Membership:
    """Membership of Shoots. Args: shoots: of the namespace of the set.

    Raises:
        ValueError: the selector has an unknown operator.
    """
    name, found = text(metadata(seed_set).get("name")), Membership()
    for shoot in shoots:
        if not matches_label_selector(spec(seed_set).get("selector"), labels(shoot)):
            continue
        owner = controller_of(shoot)
        if owner is not None and owner.get("uid") == uid(seed_set):
            found.owned.append(shoot)
        elif owner is None and is_named_by(name, shoot):
            if not is_deleting(shoot):
                found.adoptable.append(shoot)
        else:
            found.foreign.append(shoot)
    return found


def is_named_by(set_name: str, shoot: Object) -> bool:
    """Whether its name is that of a replica of the set."""
    name = text(metadata(shoot).get("name"))
    return ordinal_of(name) >= 0 and name.rpartition("-")[0] == set_name


# --- the pending replica of a set


class Reason(StrEnum):
    """Reason why a set waits for a replica."""

    SHOOT_RECONCILING = "ShootReconciling"
    SHOOT_DELETING = "ShootDeleting"
    SHOOT_RECONCILE_FAILED = "ShootReconcileFailed"
    SHOOT_DELETE_FAILED = "ShootDeleteFailed"
    MANAGED_SEED_PREPARING = "ManagedSeedPreparing"
    MANAGED_SEED_DELETING = "ManagedSeedDeleting"
    SEED_NOT_READY = "SeedNotReady"
    SHOOT_NOT_HEALTHY = "ShootNotHealthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    name: str
    reason: str
    since: datetime
    retries: int = 0
    """Number of retries of the failed operation of its Shoot."""

    @classmethod
    def of(cls, status: Object) -> "Pending | None":
        reported = mapping(status.get("pendingReplica"))
        if not text(reported.get("name")):
            return None
        try:
            since = parse_time(text(reported.get("since")))
        except ValueError:
            since = datetime.min.replace(tzinfo=UTC)
        return cls(
            name=text(reported["name"]),
            reason=text(reported.get("reason")),
            since=since,
            retries=integer(reported.get("retries")),
        )

    def following(self, before: "Pending | None") -> "Pending":
        """The same with its previous start, if nothing else differs."""
        same = before is not None and replace(before, since=self.since) == self
        return before if same and before is not None else self

    def as_json(self) -> Object:
        retries = {"retries": self.retries} if self.retries else {}
        return {"name": self.name, "reason": str(self.reason), "since": format_time(self.since), **retries}


# --- revisions


CHANGE_CAUSE = "kubernetes.io/change-cause"
"""Annotation of the set, kept with the revision."""


def templates_of(seed_set: Object) -> Object:
    """Content of a revision of the set."""
    return {field: mapping(spec(seed_set).get(field)) for field in ("template", "shootTemplate")}


def templates_in(revision: Object) -> Object:
    return mapping_at(revision, "data", "spec")


def owned(seed_set: Object, revisions: Iterable[Object]) -> list[Object]:
    """Revisions of the set, the oldest first."""
    own = [each for each in revisions if (controller_of(each) or {}).get("uid") == uid(seed_set)]
    return sorted(own, key=lambda each: (integer(each.get("revision")), key(each).name))
