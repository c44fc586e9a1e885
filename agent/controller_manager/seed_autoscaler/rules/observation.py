"""Observation of a set: from its replicas to the input of a decision."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction

from agent.controller_manager.seed_autoscaler.rules.decision import ABLE
from agent.controller_manager.seed_autoscaler.rules.loads import SHOOTS, Amounts, Observation, SeedLoad, amount_of
from agent.controller_manager.seed_autoscaler.rules.prometheus import Measurement
from gardener import keys
from gardener.garden.managed_seed_sets import Replica, removal_order
from gardener.garden.managed_seeds import DEFAULT_CAPACITY
from kube.conditions import Condition
from kube.objects import Object, annotations, integer, is_deleting, is_truthy, mapping, metadata, spec, text
from kube.paths import at, mapping_at

Usage = Callable[[str], int]
"""Number of Shoots by the name of the Seed."""


def obstacle(seed_set: Object | None, name: str) -> Condition | None:
    """Reason why nothing can be decided about a set."""
    if seed_set is None:
        return Condition(ABLE, "False", "FailedGetScale", f"ManagedSeedSet {name} does not exist in this namespace.")
    if is_deleting(seed_set):
        return Condition(ABLE, "False", "TargetNotReady", f"ManagedSeedSet {name} is being deleted.")
    seen = integer(at(seed_set, "status", "observedGeneration"))
    if seen != integer(metadata(seed_set).get("generation")):
        message = f"The controller of ManagedSeedSet {name} has not processed its latest change yet."
        return Condition(ABLE, "False", "TargetNotReady", message)
    return None


def observe(
    seed_set: Object,
    replicas: Iterable[Replica],
    usage: Usage,
    *,
    measured: Mapping[str, Measurement],
    pending: int,
    last_scale_time: datetime | None,
    now: datetime,
) -> Observation:
    """Observe a set; `measured` is the usage of other resources than Shoots, `pending` the number of waiting Shoots."""
    in_order = sorted(replicas, key=removal_order)
    leaving = [replica for replica in in_order if _is_leaving(replica)]
    staying = [replica for replica in in_order if replica not in leaving]
    asked_for = integer(spec(seed_set).get("replicas"))

    def used(seed: str) -> Amounts:
        amounts = {resource: each.by_seed[seed] for resource, each in measured.items() if seed in each.by_seed}
        return {SHOOTS: Fraction(usage(seed)), **amounts}

    present = sum(not replica.is_going for replica in in_order)
    return Observation(
        replicas=asked_for,
        existing=integer(at(seed_set, "status", "replicas")),
        seeds=[_load(replica, used(replica.name)) for replica in staying if replica.seed is not None],
        coming=sum(replica.seed is None for replica in staying) + max(asked_for - present, 0),
        has_leaving=bool(leaving),
        leaving_usage=_sum(used(replica.name) for replica in leaving),
        unit=unit_of(seed_set),
        sources={SHOOTS: "", **{resource: each.problem for resource, each in measured.items()}},
        pending=pending,
        unsettled=_unsettled(seed_set),
        last_scale_time=last_scale_time,
        now=now,
    )


def unit_of(seed_set: Object) -> Amounts:
    """Amounts of a new replica, from the template; empty without a gardenlet."""
    gardenlet = at(seed_set, "spec", "template", "spec", "gardenlet")
    if gardenlet is None:
        return {}
    reported = mapping_at(gardenlet, "config", "resources")
    capacity = _amounts({SHOOTS: DEFAULT_CAPACITY, **mapping(reported.get("capacity"))})
    reserved = _amounts(mapping(reported.get("reserved")))
    return {resource: max(amount - reserved.get(resource, 0), Fraction(0)) for resource, amount in capacity.items()}


def _is_leaving(replica: Replica) -> bool:
    return replica.is_going or (replica.seed is not None and (is_deleting(replica.seed) or is_cordoned(replica.seed)))


def is_cordoned(seed: Object) -> bool:
    return is_truthy(annotations(seed).get(keys.CORDONED))


def _sum(usages: Iterable[Amounts]) -> Amounts:
    total: dict[str, Fraction] = {}
    for usage in usages:
        for resource, amount in usage.items():
            total[resource] = total.get(resource, Fraction(0)) + amount
    return total


def _load(replica: Replica, usage: Amounts) -> SeedLoad:
    status = mapping((replica.seed or {}).get("status"))
    return SeedLoad(
        name=replica.name,
        usage=usage,
        allocatable={**_amounts(mapping(status.get("capacity"))), **_amounts(mapping(status.get("allocatable")))},
        is_ready=replica.is_seed_ready,
        is_deletable=not usage[SHOOTS] and not replica.is_protected,
    )


def _amounts(quantities: Mapping[str, object]) -> dict[str, Fraction]:
    found = ((resource, amount_of(quantity)) for resource, quantity in quantities.items())
    return {resource: amount for resource, amount in found if amount is not None}


def _unsettled(seed_set: Object) -> str:
    status, wanted = mapping(seed_set.get("status")), integer(spec(seed_set).get("replicas"))
    pending = mapping(status.get("pendingReplica"))
    if pending:
        return f"replica {text(pending.get('name'))} is pending ({text(pending.get('reason'))})"
    counts: Sequence[tuple[str, str]] = (("replicas", "exist"), ("readyReplicas", "are ready"))
    for field, what in counts:
        if integer(status.get(field)) != wanted:
            return f"{integer(status.get(field))} of {wanted} replicas {what}"
    has_partition = integer(at(spec(seed_set), "updateStrategy", "rollingUpdate", "partition")) > 0
    if status.get("currentRevision") != status.get("updateRevision") and not has_partition:
        return "its replicas are being updated"
    return ""
