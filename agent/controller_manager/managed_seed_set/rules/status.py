"""Status of a set, as far as it follows from the replicas and the next step."""

from collections.abc import Sequence

from agent.controller_manager.managed_seed_set.rules.history import History
from agent.controller_manager.managed_seed_set.rules.steps import (
    Action,
    Decision,
    Idle,
    NoneDeletable,
    SetObservation,
    Step,
)
from gardener import conditions
from gardener.garden.managed_seed_sets import Pending, Reason, Replica, ordinal_of
from gardener.garden.users import listed
from kube.clock import format_time
from kube.conditions import Condition, conditions_of, with_conditions
from kube.objects import Key, Object, integer, metadata

AVAILABLE = "Available"
_GIVEN_UP = frozenset({Reason.SHOOT_RECONCILE_FAILED, Reason.SHOOT_DELETE_FAILED})


def counted(seed_set: Object, replicas: Sequence[Replica]) -> Object:
    """Fields that do not depend on the next step. None, here and below, removes a field."""
    return {
        "observedGeneration": integer(metadata(seed_set).get("generation")),
        "replicas": len(replicas),
        "readyReplicas": sum(replica.is_ready for replica in replicas) or None,
    }


def after(decision: Decision, observed: SetObservation) -> Object:
    """The fields that are different once it is done."""
    if isinstance(decision, Idle):
        return {"pendingReplica": None}
    if isinstance(decision, NoneDeletable):
        replica = observed.pending_replica
        return {} if replica is not None and not replica.is_ready else {"pendingReplica": None}
    changed: Object = {"pendingReplica": _pending_after(decision, observed).as_json()}
    if decision.action is Action.CREATE_SHOOT:
        changed |= {"replicas": len(observed.replicas) + 1, "nextReplicaNumber": ordinal_of(decision.name) + 1}
    if decision.action is Action.DELETE_MANAGED_SEED:
        ready = sum(replica.is_ready for replica in observed.replicas if replica.name != decision.name)
        changed["readyReplicas"] = ready or None
    return changed


def _pending_after(step: Step, observed: SetObservation) -> Pending:
    pending = Pending(name=step.name, reason=step.reason, since=observed.now, retries=step.retries)
    return pending.following(observed.pending)


# --- sets with tracked templates


UNTRACKED: Object = {"currentReplicas": None, "updatedReplicas": None}
"""Replacement for `of_revisions`: former counts would exceed the number of replicas, once that falls."""


def of_revisions(history: History, replicas: Sequence[Replica]) -> Object:
    """The roll-out is over when all replicas have the update and are ready."""
    on = {name: sum(set(each.revisions) == {name} for each in replicas) for name in (history.current, history.update)}
    is_over = on[history.update] == len(replicas) == sum(replica.is_ready for replica in replicas)
    current = history.update if is_over else history.current
    return {
        "currentRevision": current,
        "updateRevision": history.update,
        "currentReplicas": on[current] or None,
        "updatedReplicas": on[history.update] or None,
        "collisionCount": history.collisions,
    }


def rejected(action: Action) -> str:
    """Reason of the condition for a step that the API server refuses."""
    if action in {Action.CREATE_SHOOT, Action.CREATE_MANAGED_SEED}:
        return "CreationRejected"
    return "DeletionRejected" if action in {Action.DELETE_SHOOT, Action.DELETE_MANAGED_SEED} else "UpdateRejected"


def conditions_after(
    seed_set: Object, observed: SetObservation, decision: Decision, *, refusal: str = ""
) -> list[Object]:
    """Conditions after the decision; `refusal` is the reason why its step is not possible."""
    wanted = [_available(observed), _progressing(observed, decision, refusal)]
    return with_conditions(conditions_of(seed_set), wanted, now=observed.now)


def _available(observed: SetObservation) -> Condition:
    ready, wanted = sum(replica.is_ready for replica in observed.replicas), observed.target
    if ready == len(observed.replicas) == wanted:
        return Condition(AVAILABLE, "True", "AllReplicasReady", f"All {wanted} replicas are ready.")
    return Condition(AVAILABLE, "False", "ReplicasNotReady", f"{ready}/{wanted} replicas are ready.")


def _progressing(observed: SetObservation, decision: Decision, refusal: str) -> Condition:
    kind = conditions.PROGRESSING
    if refusal:
        reason = rejected(decision.action) if isinstance(decision, Step) else "UpdateRejected"
        return Condition(kind, "False", reason, refusal)
    if isinstance(decision, Idle):
        return Condition(kind, "False", "Idle", "No replica is pending.")
    if isinstance(decision, NoneDeletable):
        return Condition(kind, "False", "NoDeletableReplicas", _why_none(decision))
    pending = _pending_after(decision, observed)
    message = f"replica {pending.name}: {pending.reason} since {format_time(pending.since)}"
    if decision.reason in _GIVEN_UP:
        return Condition(kind, "False", "RetriesExhausted", message)
    return Condition(kind, "True", decision.reason, message)


def _why_none(found: NoneDeletable) -> str:
    named = {"protected": found.protected, "in use": found.in_use}
    return "; ".join(f"{what}: {listed(Key('', name) for name in names)}" for what, names in named.items() if names)
