"""Decide the next step for a ManagedSeedSet: at most one, for one replica.

The set waits for the replica that is pending. Then it grows or shrinks by one, or handles replicas that are not ready,
or brings one to the present templates. The decision depends on the state of the objects alone, so that a pass that was
interrupted anywhere is resumed by the next one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto

from gardener.garden.managed_seed_sets import (
    Pending,
    Reason,
    Replica,
    ReplicaState,
    ShootHealth,
    name_of,
    next_ordinal,
    removal_order,
    shoot_state,
)

_LONGEST_PAUSE = 8 * 3600.0
"""Maximum pause between two rounds of retries, in seconds."""


class Action(Enum):
    WAIT = auto()
    CREATE_SHOOT = auto()
    RETRY_SHOOT = auto()
    UPDATE_SHOOT = auto()
    DELETE_SHOOT = auto()
    CREATE_MANAGED_SEED = auto()
    UPDATE_MANAGED_SEED = auto()
    DELETE_MANAGED_SEED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Step for one replica, which is pending from then on."""

    action: Action
    name: str
    reason: Reason
    event: str
    """Reason of the Event about it."""
    message: str
    retries: int = 0
    again_after: float | None = None
    """Seconds until the next pass even if nothing changes."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoneDeletable:
    """There are too many replicas, but all are protected or in use."""

    protected: Sequence[str]
    in_use: Sequence[str]


Decision = Step | Idle | NoneDeletable


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """Shoots on a Seed."""

    total: int
    unhealthy: int
    """Shoots that are not known to be healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """Roll-out of changed templates to the replicas."""

    current: str
    """Previous revision of the replicas."""
    update: str
    """Revision of the present templates."""
    partition: int = 0
    """Replicas with a lower number are not updated."""
    max_unhealthy: int | str | None = None
    """Maximum of unhealthy Shoots on an updated Seed: a number, or a percentage; None for no limit."""

    def of_new(self, ordinal: int) -> str:
        """The revision that a new replica is made from."""
        return self.update if ordinal >= self.partition else self.current

    def tolerates(self, scheduled: "Scheduled") -> bool:
        """Whether the roll-out continues with these Shoots on an updated Seed."""
        most = self.max_unhealthy
        if isinstance(most, str):
            share = most.removesuffix("%")
            most = scheduled.total * int(share) // 100 if share.isascii() and share.isdigit() else 0
        return most is None or scheduled.unhealthy <= most

    def lacks_update(self, revision: str, ordinal: int) -> bool:
        return revision != self.update and ordinal >= self.partition


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operation:
    """Operation of a Shoot, which may have failed."""

    running: Reason
    failed: Reason
    retrying: str
    giving_up: str
    noun: str


_RECONCILIATION = _Operation(
    running=Reason.SHOOT_RECONCILING,
    failed=Reason.SHOOT_RECONCILE_FAILED,
    retrying="RetryingShootReconciliation",
    giving_up="NotRetryingShootReconciliation",
    noun="reconciliation",
)
_DELETION = _Operation(
    running=Reason.SHOOT_DELETING,
    failed=Reason.SHOOT_DELETE_FAILED,
    retrying="RetryingShootDeletion",
    giving_up="NotRetryingShootDeletion",
    noun="deletion",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetObservation:
    """Input of a decision.

    Attributes:
        name: name of the set.
        replicas: existing replicas.
        target: requested number of replicas; 0 while the set is being deleted.
        pending: pending replica, from the status.
        next_number: number of the next replica, from the status.
        used_seeds: Seeds with Shoots.
        max_retries: retries of a failed operation of a Shoot, in one round.
        pause: seconds until the second round of retries; it doubles with each.
        is_asked: whether a change or a requested reconciliation since the last pass starts a new round.
        rollout: roll-out of the templates; None if they are for new replicas only.
        scheduled: Shoots by the name of the Seed, if a roll-out depends on them.
    """

    namespace: str
    name: str
    replicas: Sequence[Replica]
    target: int
    pending: Pending | None
    next_number: int
    used_seeds: Collection[str]
    now: datetime
    max_retries: int
    pause: float
    is_asked: bool = False
    rollout: Rollout | None = None
    scheduled: Mapping[str, Scheduled] = field(default_factory=dict)

    @property
    def is_scaling_in(self) -> bool:
        return len(self.replicas) > self.target

    @property
    def pending_replica(self) -> Replica | None:
        name = self.pending.name if self.pending else ""
        return next((replica for replica in self.replicas if replica.name == name), None)


def decide(observed: SetObservation) -> Decision:
    pending = observed.pending_replica
    if pending is not None and (step := _handled(observed, pending)):
        return step
    if len(observed.replicas) < observed.target:
        return _creation(observed)
    if observed.is_scaling_in:
        return _scaled_in(observed)
    by_ordinal = sorted(observed.replicas, key=lambda replica: replica.ordinal)
    for replica in by_ordinal:
        if replica is not pending and (step := _handled(observed, replica)):
            return step
    for replica in reversed(by_ordinal):
        if step := _updated(observed, replica):
            return _harmed(observed) or step
    return Idle()


def _handled(observed: SetObservation, replica: Replica) -> Step | None:
    """Step that a replica waits for or needs; None if there is none, or the set shrinks and the replica can be removed
    as is.
    """
    match replica.state:
        case ReplicaState.SHOOT_DELETE_FAILED:
            return _after_failure(observed, replica, _DELETION)
        case ReplicaState.SHOOT_DELETING:
            return _under_way(observed, replica, _DELETION, "WaitingForShootDeleted", "deleted")
        case ReplicaState.MANAGED_SEED_DELETING:
            waits = f"Waiting for ManagedSeed {_full(observed, replica)} to be deleted"
            return _wait(replica, Reason.MANAGED_SEED_DELETING, "WaitingForManagedSeedDeleted", waits)
    if observed.is_scaling_in:
        return _removal(observed, replica) if _is_half_removed(observed, replica) else None
    step = _lacking(observed, replica)
    return (_correction(observed, replica) or step) if step else None


def _lacking(observed: SetObservation, replica: Replica) -> Step | None:
    """Step that makes a replica ready. If the Shoot is ahead of its ManagedSeed in an update, only the Shoot counts."""
    is_ahead = observed.rollout is not None and len(set(replica.revisions)) > 1
    match shoot_state(replica.shoot) if is_ahead else replica.state:
        case ReplicaState.SHOOT_RECONCILE_FAILED:
            return _after_failure(observed, replica, _RECONCILIATION)
        case ReplicaState.SHOOT_RECONCILING:
            return _under_way(observed, replica, _RECONCILIATION, "WaitingForShootReconciled", "reconciled")
        case ReplicaState.SHOOT_RECONCILED if is_ahead:
            return _unhealthy(observed, replica) or _managed_seed_update(observed, replica)
        case ReplicaState.SHOOT_RECONCILED:
            return Step(
                action=Action.CREATE_MANAGED_SEED,
                name=replica.name,
                reason=Reason.MANAGED_SEED_PREPARING,
                event="CreatingManagedSeed",
                message=f"Creating ManagedSeed {_full(observed, replica)}",
            )
        case ReplicaState.MANAGED_SEED_PREPARING:
            waits = f"Waiting for ManagedSeed {_full(observed, replica)} to be registered"
            return _wait(replica, Reason.MANAGED_SEED_PREPARING, "WaitingForManagedSeedRegistered", waits)
    if not replica.is_seed_ready:
        waits = f"Waiting for Seed {replica.name} to be ready"
        return _wait(replica, Reason.SEED_NOT_READY, "WaitingForSeedReady", waits)
    return _unhealthy(observed, replica)


def _full(observed: SetObservation, replica: Replica) -> str:
    return f"{observed.namespace}/{replica.name}"


def _wait(replica: Replica, reason: Reason, event: str, message: str) -> Step:
    return Step(action=Action.WAIT, name=replica.name, reason=reason, event=event, message=message)


def _unhealthy(observed: SetObservation, replica: Replica) -> Step | None:
    if replica.health is ShootHealth.HEALTHY:
        return None
    waits = f"Waiting for Shoot {_full(observed, replica)} to be healthy"
    return _wait(replica, Reason.SHOOT_NOT_HEALTHY, "WaitingForShootHealthy", waits)


# --- retries


def _retries(observed: SetObservation, replica: Replica, operation: _Operation) -> int:
    """Number of retries of this operation so far; reset when it has succeeded."""
    pending = observed.pending
    known = {operation.running, operation.failed}
    return pending.retries if pending and pending.name == replica.name and pending.reason in known else 0


def _under_way(observed: SetObservation, replica: Replica, operation: _Operation, event: str, participle: str) -> Step:
    return Step(
        action=Action.WAIT,
        name=replica.name,
        reason=operation.running,
        event=event,
        message=f"Waiting for Shoot {_full(observed, replica)} to be {participle}",
        retries=_retries(observed, replica, operation),
    )


def _after_failure(observed: SetObservation, replica: Replica, operation: _Operation) -> Step:
    """Retry the operation up to the limit of the round; then wait for the next round, longer each time."""
    retries, limit = _retries(observed, replica, operation), observed.max_retries
    full = _full(observed, replica)
    left = 0.0 if limit and (observed.is_asked or retries % limit or not retries) else None
    if left is None and limit:
        left = _left_of_pause(observed, operation, rounds=retries // limit)
    if left is not None and left <= 0:
        return Step(
            action=Action.RETRY_SHOOT,
            name=replica.name,
            reason=operation.running,
            event=operation.retrying,
            message=f"Retrying Shoot {full} {operation.noun}",
            retries=retries + 1,
        )
    return Step(
        action=Action.WAIT,
        name=replica.name,
        reason=operation.failed,
        event=operation.giving_up,
        message=f"Not retrying Shoot {full} {operation.noun} since max retries have been reached",
        retries=retries,
        again_after=left,
    )


def _left_of_pause(observed: SetObservation, operation: _Operation, *, rounds: int) -> float:
    """Rest of the pause in seconds; the whole one if it begins now."""
    pause = min(observed.pause * 2.0 ** min(rounds - 1, 30), _LONGEST_PAUSE)
    pending = observed.pending
    if pending is None or pending.reason != operation.failed:
        return pause
    return min(pause - (observed.now - pending.since) / timedelta(seconds=1), pause)


# --- scaling


def _creation(observed: SetObservation) -> Step:
    ordinal = next_ordinal(observed.next_number, (replica.name for replica in observed.replicas))
    name = name_of(observed.name, ordinal)
    return Step(
        action=Action.CREATE_SHOOT,
        name=name,
        reason=Reason.SHOOT_RECONCILING,
        event="CreatingShoot",
        message=f"Creating Shoot {observed.namespace}/{name}",
    )


def _scaled_in(observed: SetObservation) -> Step | NoneDeletable:
    candidates = [
        replica
        for replica in observed.replicas
        if replica.is_going or not (replica.is_protected or replica.name in observed.used_seeds)
    ]
    if candidates:
        return _removal(observed, min(candidates, key=removal_order))
    return NoneDeletable(
        protected=sorted(replica.name for replica in observed.replicas if replica.is_protected),
        in_use=sorted(replica.name for replica in observed.replicas if replica.name in observed.used_seeds),
    )


def _is_half_removed(observed: SetObservation, replica: Replica) -> bool:
    """Whether only the Shoot is left, or never had a ManagedSeed. A protection does not stop a removal once begun."""
    if replica.managed_seed is not None:
        return False
    pending = observed.pending
    has_begun = pending is not None and pending.name == replica.name and pending.reason == Reason.MANAGED_SEED_DELETING
    return has_begun or (replica.state is ReplicaState.SHOOT_RECONCILED and not replica.is_protected)


def _removal(observed: SetObservation, replica: Replica) -> Step:
    full = _full(observed, replica)
    if replica.managed_seed is not None:
        return Step(
            action=Action.DELETE_MANAGED_SEED,
            name=replica.name,
            reason=Reason.MANAGED_SEED_DELETING,
            event="DeletingManagedSeed",
            message=f"Deleting ManagedSeed {full}",
        )
    if replica.seed is not None:
        # The ManagedSeed was removed without its Seed, which runs in the cluster of the Shoot and would lose it.
        waits = f"Waiting for Seed {replica.name} to be deleted"
        return _wait(replica, Reason.MANAGED_SEED_DELETING, "WaitingForSeedDeleted", waits)
    return Step(
        action=Action.DELETE_SHOOT,
        name=replica.name,
        reason=Reason.SHOOT_DELETING,
        event="DeletingShoot",
        message=f"Deleting Shoot {full}",
    )


# --- updates


def _updated(observed: SetObservation, replica: Replica) -> Step | None:
    """Next step to the present templates; None if the replica has them, or is not updated."""
    if observed.rollout is None or replica.ordinal < 0:
        return None
    if observed.rollout.lacks_update(replica.revisions[0], replica.ordinal):
        return Step(
            action=Action.UPDATE_SHOOT,
            name=replica.name,
            reason=Reason.SHOOT_RECONCILING,
            event="UpdatingShoot",
            message=f"Updating Shoot {_full(observed, replica)}",
        )
    return _managed_seed_update(observed, replica)


def _harmed(observed: SetObservation) -> Step | None:
    """Wait for the Shoots on an updated Seed before the next one is updated."""
    rollout = observed.rollout
    for replica in observed.replicas:
        scheduled = observed.scheduled.get(replica.name)
        if rollout is None or scheduled is None or set(replica.revisions) != {rollout.update}:
            continue
        if not rollout.tolerates(scheduled):
            shoots = f"{scheduled.unhealthy} of {scheduled.total} Shoots on Seed {replica.name}"
            waits = f"Waiting for {shoots} to be healthy"
            return _wait(replica, Reason.SHOOT_NOT_HEALTHY, "WaitingForScheduledShootsHealthy", waits)
    return None


def _managed_seed_update(observed: SetObservation, replica: Replica) -> Step | None:
    """Update a ManagedSeed to the revision of its Shoot, even if the templates have changed since."""
    if observed.rollout is None or replica.managed_seed is None or len(set(replica.revisions)) == 1:
        return None
    return Step(
        action=Action.UPDATE_MANAGED_SEED,
        name=replica.name,
        reason=Reason.MANAGED_SEED_PREPARING,
        event="UpdatingManagedSeed",
        message=f"Updating ManagedSeed {_full(observed, replica)}",
    )


def _correction(observed: SetObservation, replica: Replica) -> Step | None:
    """Update of a replica that may never become ready as it is: its revision was given up, or its Shoot has failed.

    Otherwise a mistake in the templates could not be repaired by correcting them.
    """
    rollout, revision = observed.rollout, replica.revisions[0]
    if rollout is None or not rollout.lacks_update(revision, replica.ordinal):
        return None
    is_given_up = revision not in {rollout.current, ""}
    has_failed = shoot_state(replica.shoot) is ReplicaState.SHOOT_RECONCILE_FAILED
    return _updated(observed, replica) if is_given_up or has_failed else None
