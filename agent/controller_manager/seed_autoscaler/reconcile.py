"""One pass over a SeedAutoscaler: the number of replicas of its set is decided, written and reported.

The history is kept in memory: a new leader observes a whole window before it gives up a Seed. Before that it checks in
the API server that the Seeds are empty.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from agent.controller_manager.common.api import target_of
from agent.controller_manager.seed_autoscaler.inputs import ScalingInputs
from agent.controller_manager.seed_autoscaler.prometheus import Prometheus
from agent.controller_manager.seed_autoscaler.rules.decision import (
    ABLE,
    ACTIVE,
    Decision,
    Memory,
    decide,
    impossible,
    status_after,
)
from agent.controller_manager.seed_autoscaler.rules.loads import Observation
from agent.controller_manager.seed_autoscaler.rules.observation import observe, obstacle
from agent.controller_manager.seed_autoscaler.rules.settings import Settings
from gardener import keys
from gardener.api.garden import MANAGED_SEED_SETS
from gardener.garden.users import listed
from kube.clock import time_or_none
from kube.conditions import Condition
from kube.errors import Conflict, KubeError, refusal_of
from kube.objects import Key, Object, annotations, condition, is_deleting, is_truthy, key, metadata
from kube.paths import at
from kube.runtime.controller import Done, ReconcileError, Requeue, RequeueAfter, Result
from kube.runtime.events import EventRecorder
from kube.runtime.status import StatusWriter

_REPORTER = "seedautoscaler-controller"


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    inputs: ScalingInputs
    statuses: StatusWriter
    recorder: EventRecorder
    clock: Callable[[], datetime]
    sources: Sequence[Prometheus] = ()
    """Sources of the usage of other resources than Shoots."""
    _memories: dict[Key, Memory] = field(default_factory=dict)

    async def reconcile(self, own: Key) -> Result:
        autoscaler = self.inputs.autoscalers.get(own)
        if autoscaler is None or is_deleting(autoscaler):
            self._memories.pop(own, None)
            return Done()
        now, memory = self.clock(), self._memories.get(own, Memory())
        target = target_of(autoscaler)
        seed_set = self.inputs.sets.get(target)
        hindrance = self._ambiguity(autoscaler) or obstacle(seed_set, target.name)
        if seed_set is None or hindrance is not None:
            await self._write(autoscaler, impossible(hindrance, memory), None, now)
            return Done()
        settings = Settings.of(autoscaler)
        sources = [source for source in self.sources if source.resource in settings.resources]
        measured = {source.resource: await source.measured(now) for source in sources}
        pending = await self.inputs.pending(autoscaler, now)
        try:
            replicas = self.inputs.replicas(seed_set)
        except ValueError as error:
            raise ReconcileError(f"invalid selector of ManagedSeedSet {target}: {error}") from error
        seen = observe(
            seed_set,
            replicas,
            self.inputs.usage,
            measured=measured,
            pending=pending.count,
            last_scale_time=time_or_none(at(autoscaler, "status", "lastScaleTime")),
            now=now,
        )
        seen, decision = await self._decide(autoscaler, settings, seen, memory)
        if decision.why:
            try:
                await self._scale(seed_set, decision.replicas)
            except Conflict:
                return Requeue()
            except KubeError as error:
                await self._report_failure(autoscaler, decision, error, now)
                raise
            self._report(autoscaler, decision)
        self._memories[own] = decision.memory
        await self._write(autoscaler, decision, seen, now)
        return _next_look(now, decision.again_at, pending.more_at, *(source.again_at for source in sources))

    def _ambiguity(self, autoscaler: Object) -> Condition | None:
        rivals = self.inputs.rivals(autoscaler)
        if not rivals:
            return None
        message = f"ManagedSeedSet {target_of(autoscaler).name} is also scaled by {listed(sorted(rivals))}"
        return Condition(
            ACTIVE,
            "False",
            "AmbiguousTarget",
            f"{message}. Scaling is disabled; delete all of these autoscalers but one.",
        )

    async def _decide(
        self, autoscaler: Object, settings: Settings, seen: Observation, memory: Memory
    ) -> tuple[Observation, Decision]:
        """Decide by the caches; to remove Seeds, again with the state in the API server.

        Raises:
            KubeError: a check failed.
        """
        paused = is_truthy(annotations(autoscaler).get(keys.AUTOSCALING_PAUSED))
        decision = decide(settings, seen, memory, paused=paused)
        if decision.replicas < seen.replicas:
            seen = await self.inputs.checked(seen)
            decision = decide(settings, seen, memory, paused=paused)
        return seen, decision

    # --- writing and reporting

    async def _scale(self, seed_set: Object, replicas: int) -> None:
        """Write the number of replicas.

        Raises:
            Conflict: the set has changed.
        """
        meta, own = metadata(seed_set), key(seed_set)
        scale = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {field: meta[field] for field in ("name", "namespace", "uid", "resourceVersion")},
            "spec": {"replicas": replicas},
        }
        path = MANAGED_SEED_SETS.path_of(own, "scale")
        await self.inputs.client.request("PUT", path, body=scale)

    async def _write(self, autoscaler: Object, decision: Decision, seen: Observation | None, now: datetime) -> None:
        def compute(status: Object) -> Object:
            return {**status, **status_after({**autoscaler, "status": status}, decision, seen, now=now)}

        await self.statuses.update_if_exists(autoscaler, compute)

    def _report(self, autoscaler: Object, decision: Decision) -> None:
        reason = "ScaleInCancelled" if decision.is_cancelled else "SuccessfulRescale"
        message = f"New size: {decision.replicas}; reason: {decision.why}"
        self.recorder.event(autoscaler, "Normal", reason, message, reporter=_REPORTER)

    async def _report_failure(self, autoscaler: Object, decision: Decision, error: KubeError, now: datetime) -> None:
        message = f"Cannot set the number of replicas to {decision.replicas}: {refusal_of(error)}"
        found = Condition(ABLE, "False", "FailedUpdateScale", message)
        if (condition(autoscaler, ABLE) or {}).get("message") != message:
            self.recorder.event(autoscaler, "Warning", "FailedRescale", message, reporter=_REPORTER)
        await self._write(autoscaler, impossible(found, decision.memory), None, now)


def _next_look(now: datetime, *times: datetime | None) -> Result:
    known = [time for time in times if time is not None]
    return RequeueAfter((min(known) - now).total_seconds()) if known else Done()
