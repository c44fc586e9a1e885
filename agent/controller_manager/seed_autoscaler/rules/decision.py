"""Desired number of replicas of a set, with the reason.

    decision = decide(settings, seen, memory)
    decision.replicas      to write, if it differs from the present one
    decision.why           reason
    decision.conditions    for the status
    decision.memory        for the next decision
    decision.again_at      time at which it may change though nothing else does

Safety comes first. Unknown values never lead to fewer Seeds; a Seed is given up only when fewer were wanted for a whole
window, the set is settled, no Shoot waits, and there is a Seed without Shoots. More Seeds are made at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from agent.controller_manager.seed_autoscaler.rules.history import History
from agent.controller_manager.seed_autoscaler.rules.loads import Observation
from agent.controller_manager.seed_autoscaler.rules.recommendation import (
    Measured,
    Recommendation,
    percent,
    plain,
    recommend,
)
from agent.controller_manager.seed_autoscaler.rules.settings import Settings
from kube.clock import format_time
from kube.conditions import Condition, conditions_of, with_conditions
from kube.objects import Object, integer, metadata

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
_PATIENCE_WITH_REMOVAL = timedelta(minutes=5)
"""Time after which a removal that can't be carried out is cancelled."""
_BELOW = "all metrics are below their targets"
_ABLE = Condition(ABLE, "True", "ReadyForNewScale", "The number of replicas can be changed.")
_NONE_DELETABLE = Condition(
    LIMITED,
    "True",
    "NoDeletableReplicas",
    "Fewer replicas suffice, but all Seeds have Shoots, or their replicas are protected.",
)
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """State from former passes of this process.

    Attributes:
        reduced_to: number that was written last, if it was less than before.
        stuck_since: time since which the set can't shrink to that number.
    """

    history: History = field(default_factory=History)
    reduced_to: int | None = None
    stuck_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    replicas: int
    """Desired number of replicas from now on."""
    desired: int
    """Desired number without regard to steps, windows and other limits."""
    why: str = ""
    """Reason of the change; empty for none."""
    is_cancelled: bool = False
    """An earlier removal is cancelled."""
    measured: Sequence[Measured] = ()
    conditions: Sequence[Condition] = ()
    memory: Memory = field(default_factory=Memory)
    again_at: datetime | None = None


def decide(settings: Settings, seen: Observation, memory: Memory, *, paused: bool = False) -> Decision:
    if seen.replicas == 0:
        return _switched_off(memory)
    requested = recommend(settings, seen)
    decider = _Decider(settings, seen, _remembered(settings, seen, memory, requested), requested)
    return decider.paused() if paused else decider.decide()


def impossible(why: Condition | None, memory: Memory) -> Decision:
    """Decision to do nothing."""
    return Decision(replicas=0, desired=0, conditions=() if why is None else (why,), memory=memory)


def _switched_off(memory: Memory) -> Decision:
    message = "The set has 0 replicas, which disables scaling. Set replicas to 1 or more to enable it."
    conditions = (Condition(ACTIVE, "False", "ScalingDisabled", message),)
    return Decision(replicas=0, desired=0, conditions=conditions, memory=replace(memory, history=History()))


def _remembered(settings: Settings, seen: Observation, memory: Memory, requested: Recommendation) -> Memory:
    """Record the recommendation; an unknown one counts as no change."""
    wanted = seen.replicas if requested.wanted is None else _bounded(settings, requested.wanted)
    longest = max(settings.scale_in.window, settings.scale_out.window)
    history = memory.history.recorded(wanted, seen.now, keep=longest)
    is_stuck = (
        memory.reduced_to == seen.replicas < seen.existing <= settings.max_replicas
        and not seen.has_leaving
        and not any(seed.is_deletable for seed in seen.seeds)
    )
    return Memory(
        history=history,
        reduced_to=memory.reduced_to if memory.reduced_to == seen.replicas else None,
        stuck_since=(memory.stuck_since or seen.now) if is_stuck else None,
    )


def _bounded(settings: Settings, replicas: int) -> int:
    return max(min(replicas, settings.max_replicas), settings.min_replicas)


class _Decider:
    def __init__(self, settings: Settings, seen: Observation, memory: Memory, requested: Recommendation) -> None:
        self._settings, self._seen, self._memory, self._requested = settings, seen, memory, requested
        self._present = seen.replicas
        self._desired = _bounded(settings, seen.replicas if requested.wanted is None else requested.wanted)

    def paused(self) -> Decision:
        message = "Scaling is paused by an annotation of the SeedAutoscaler."
        return self._stay(limited=self._bounds(), able=Condition(ABLE, "False", "Paused", message))

    def decide(self) -> Decision:
        if self._present < self._settings.min_replicas:
            return self._go(self._settings.min_replicas, "below minReplicas", self._bounds())
        if self._desired > self._present:
            return self._out()
        stuck = self._memory.stuck_since
        if stuck is not None and self._seen.now - stuck >= _PATIENCE_WITH_REMOVAL:
            return replace(self._go(self._seen.existing, "no replica can be removed"), is_cancelled=True)
        decision = self._in() if self._desired < self._present else self._stay(limited=self._bounds())
        return decision if stuck is None else self._again(decision, stuck + _PATIENCE_WITH_REMOVAL)

    # --- scaling out

    def _out(self) -> Decision:
        direction, history = self._settings.scale_out, self._memory.history
        agreed = history.more_from(self._present, direction.window) or self._seen.now
        if self._seen.now < agreed:
            message = f"More replicas are added if they are still desired at {format_time(agreed)}."
            return self._again(self._stay(limited=Condition(LIMITED, "True", "ScaleUpLimit", message)), agreed)
        cooled = self._cooled(direction.cooldown)
        if self._seen.now < cooled:
            return self._cooling(cooled)
        wanted = min(history.lowest_in(direction.window, self._seen.now), self._settings.max_replicas)
        step = self._present + direction.max_step
        limited = self._bounds()
        if wanted > step:
            message = f"Of {wanted - self._present} missing replicas, {direction.max_step} are added at once."
            limited = Condition(LIMITED, "True", "ScaleUpLimit", message)
        return self._go(min(wanted, step), self._requested.why, limited)

    # --- scaling in

    def _in(self) -> Decision:
        direction, history = self._settings.scale_in, self._memory.history
        is_beyond = self._present > self._settings.max_replicas
        if obstacle := self._obstacle():
            return self._stay(limited=Condition(LIMITED, "True", "ScaleDownLimit", obstacle))
        agreed = self._seen.now if is_beyond else history.fewer_from(self._present, direction.window)
        if agreed is not None and self._seen.now < agreed:
            message = f"Replicas are removed if fewer are still desired at {format_time(agreed)}."
            return self._again(self._stay(limited=Condition(LIMITED, "True", "ScaleDownStabilized", message)), agreed)
        cooled = self._cooled(direction.cooldown)
        if self._seen.now < cooled:
            return self._cooling(cooled)
        wanted = min(history.highest_in(direction.window, self._seen.now), self._settings.max_replicas)
        deletable = sum(seed.is_deletable for seed in self._seen.seeds)
        step = max(wanted, self._present - direction.max_step, self._settings.min_replicas)
        limited = self._bounds()
        if step > wanted:
            message = f"Of {self._present - wanted} surplus replicas, {direction.max_step} are removed at once."
            limited = Condition(LIMITED, "True", "ScaleDownLimit", message)
        new = max(step, self._present - deletable)
        if new == self._present:
            return self._stay(limited=_NONE_DELETABLE)
        return self._go(new, "above maxReplicas" if is_beyond else _BELOW, limited)

    def _obstacle(self) -> str:
        """Reason why no Seed can be given up; empty for none."""
        if self._settings.scale_in.disabled:
            return "Fewer replicas suffice, but spec.behavior.scaleIn.disabled is set."
        if self._requested.unknown:
            return "Fewer replicas suffice, but not all metrics are known."
        if self._seen.pending:
            return f"Fewer replicas suffice, but {self._seen.pending} Shoots wait for a Seed."
        if self._seen.unsettled:
            return f"Fewer replicas suffice, but the set is still changing: {self._seen.unsettled}."
        return ""

    # --- decisions

    def _cooled(self, cooldown: timedelta) -> datetime:
        last = self._seen.last_scale_time
        return self._seen.now if last is None else last + cooldown

    def _cooling(self, until: datetime) -> Decision:
        message = f"The number of replicas was changed recently; the next change is possible at {format_time(until)}."
        able = Condition(ABLE, "False", "BackoffBoth", message)
        return self._again(self._stay(limited=self._bounds(), able=able), until)

    def _bounds(self) -> Condition:
        wanted = self._requested.wanted
        if wanted is not None and wanted > self._settings.max_replicas:
            message = f"{wanted} replicas are desired, but maxReplicas is {self._settings.max_replicas}."
            return Condition(LIMITED, "True", "TooManyReplicas", message)
        if wanted is not None and wanted < self._settings.min_replicas:
            message = f"{wanted} replicas are desired, but minReplicas is {self._settings.min_replicas}."
            return Condition(LIMITED, "True", "TooFewReplicas", message)
        if self._requested.lacks_deletable and self._desired >= self._present > self._settings.min_replicas:
            return _NONE_DELETABLE
        return Condition(LIMITED, "False", "DesiredWithinRange", "The desired number of replicas is within the limits.")

    def _stay(self, *, limited: Condition | None = None, able: Condition | None = None) -> Decision:
        return self._decision(self._present, limited or self._bounds(), able or _ABLE)

    def _go(self, replicas: int, why: str, limited: Condition | None = None) -> Decision:
        able = Condition(ABLE, "True", "SucceededRescale", f"The number of replicas was set to {replicas}: {why}.")
        memory = replace(self._memory, reduced_to=replicas if replicas < self._present else None, stuck_since=None)
        return replace(self._decision(replicas, limited or self._bounds(), able), why=why, memory=memory)

    def _decision(self, replicas: int, limited: Condition, able: Condition) -> Decision:
        return Decision(
            replicas=replicas,
            desired=self._desired,
            measured=self._requested.measured,
            conditions=(able, self._active(), limited),
            memory=self._memory,
        )

    def _active(self) -> Condition:
        unknown = "; ".join(each.why for each in self._requested.unknown)
        if self._requested.wanted is None:
            return Condition(ACTIVE, "False", "FailedGetResourceMetric", f"No metric can be computed: {unknown}.")
        rest = f" Unknown: {unknown}; no replicas are removed meanwhile." if unknown else ""
        return Condition(ACTIVE, "True", "ValidMetricFound", f"The number of replicas is computed from metrics.{rest}")

    def _again(self, decision: Decision, at: datetime) -> Decision:
        return replace(decision, again_at=min(at, decision.again_at or at))


def status_after(autoscaler: Object, decision: Decision, seen: Observation | None, *, now: datetime) -> Object:
    """Changed fields of the status; None removes one, such as a count of 0. `seen` is None without an observation."""
    fields: Object = {
        "observedGeneration": integer(metadata(autoscaler).get("generation")),
        "conditions": with_conditions(conditions_of(autoscaler), decision.conditions, now=now),
    }
    if seen is None:
        return fields
    return {
        **fields,
        "currentReplicas": seen.existing or None,
        "desiredReplicas": decision.replicas or None,
        "pendingShoots": seen.pending or None,
        "currentMetrics": [_current(measured) for measured in decision.measured],
        **({"lastScaleTime": format_time(now)} if decision.why else {}),
    }


def _current(measured: Measured) -> Object:
    share = measured.utilization
    used = {} if share is None else {"averageUtilization": min(percent(share), _MOST)}
    amounts = {
        "averageValue": plain(measured.average),
        "total": plain(measured.total),
        "allocatable": plain(measured.allocatable),
    }
    return {"type": "Resource", "resource": {"name": measured.metric.resource, "current": {**used, **amounts}}}
