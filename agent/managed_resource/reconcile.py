"""One pass over a ManagedResource.

    ignored?            say so, and leave everything as it is
    leaving?            remove what is listed (deletion, change of class), then take the finalizer off
    otherwise           finalizer, plan, list what is about to be created, apply and remove, say how it went

The inventory in the status is the only memory that outlives this process (see `inventory`). It is written before
the first object is created, so nothing is ever leaked, and once more at the end together with the conditions. Where
nothing has changed, nothing is written, and where nothing is to be done, nothing is asked.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import structlog

from agent.changes import RecentChanges
from agent.managed_resource import conditions, keys
from agent.managed_resource.apply import ApplyError, Outcome, Work, apply, is_up_to_date
from agent.managed_resource.autoscaling import Scaled, TargetReferenceError
from agent.managed_resource.conditions import Condition
from agent.managed_resource.inventory import PENDING, all_listed, only_announced
from agent.managed_resource.merge import Overwrite
from agent.managed_resource.messages import apply_message, release_message
from agent.managed_resource.ownership import Ownership
from agent.managed_resource.plan import Plan, Wanted
from agent.managed_resource.plans import Memory, Plans, SecretError
from agent.managed_resource.record import Record
from agent.managed_resource.references import sorted_references
from agent.managed_resource.refused import kept
from agent.managed_resource.remove import Leaving, Pending, release, remove
from agent.managed_resource.restrictions import Mandate, Refusal, mandate_of
from agent.managed_resource.scaling import SCALABLE, Autoscalers, ListError
from agent.managed_resource.source import Source
from agent.managed_resource.step import Step
from agent.managed_resource.target import Target
from agent.managed_resource.telling import Tally, Telling
from agent.responsibility import finalizer_of, is_ignored, is_responsible, must_wait
from agent.status import StatusWriter
from config.schema_restrictions import Impersonation
from kube.controller import Done, ReconcileError, RequeueAfter, Result
from kube.errors import KubeError
from kube.events import EventRecorder
from kube.objects import Key, Object, annotations, finalizers, format_duration, is_deleting, key, metadata
from kube.resources import Resource

_PENDING_SECONDS = 5.0
_WAIT_SECONDS = 30.0
_STUCK_SECONDS = 60.0
_SERVED_SECONDS = 0.3
"""Until another look at kinds whose definitions were applied just now, if their news does not come before."""
_EARLIEST = 0.9
"""The part of the sync period after which the next regular pass may come: spreads load after a restart."""
_AT_ONCE = 10
"""Objects of one ManagedResource that are worked on at the same time; leaves room for the others."""


@dataclass(frozen=True, slots=True)
class Settings:
    resource_class: str
    cluster_id: str
    sync_period: float
    time_limit: float
    """Seconds for applying and removing; what was not reached then is reported as failed."""
    always_update: bool
    garbage_collector: bool
    impersonation: Impersonation


class Reconciler:
    """Args:
    refusal: from the namespace of a ManagedResource to what it may not write.
    wake: has other ManagedResources looked at, since an object became free for them.
    """

    def __init__(
        self,
        *,
        source: Source,
        target: Target,
        plans: Plans,
        autoscalers: Autoscalers,
        recorder: EventRecorder,
        status: StatusWriter,
        settings: Settings,
        refusal: Callable[[str], Refusal],
        wake: Callable[[Iterable[Key]], None],
        service_warnings: Callable[[Key], Awaitable[str]],
        changes: RecentChanges,
        utcnow: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._source = source
        self._target = target
        self._plans = plans
        self._autoscalers = autoscalers
        self._telling = Telling(recorder)
        self._settings = settings
        self._refusal = refusal
        self._service_warnings = service_warnings
        self._changes = changes
        self._utcnow = utcnow
        self._finalizer = finalizer_of(settings.resource_class)
        self._ownership = Ownership(source=source, plans=plans, cluster_id=settings.cluster_id, wake=wake)
        self._record = Record(
            client=source.client,
            store=source.managed_resources,
            status=status,
            finalizer=self._finalizer,
            retry=lambda name: wake((name,)),
            utcnow=utcnow,
        )
        self._log = structlog.get_logger()

    async def reconcile(self, name: Key) -> Result:
        managed_resource = self._source.managed_resources.get(name)
        if managed_resource is None:
            await self._forget(name)
            return Done()
        managed_resource = self._record.expected(managed_resource)
        operation = annotations(managed_resource).get(keys.OPERATION)
        if operation == keys.OPERATION_WAIT_FOR_STATE:
            return Done()
        if operation == keys.OPERATION_RECONCILE:
            managed_resource = await self._record.patch(managed_resource, {"annotations": {keys.OPERATION: None}})
        if is_ignored(managed_resource) and not is_deleting(managed_resource):
            await self._record.write(managed_resource, conditions.ignored())
            return Done()
        responsible = is_responsible(managed_resource, resource_class=self._settings.resource_class)
        if is_deleting(managed_resource):
            return await self._leave(managed_resource)
        if not responsible:
            ours = self._finalizer in finalizers(managed_resource) or self._plans.knows(name)
            return await self._leave(managed_resource) if ours else Done()
        if must_wait(managed_resource, resource_class=self._settings.resource_class):
            return RequeueAfter(_WAIT_SECONDS)
        try:
            return await self._manage(managed_resource)
        except (KubeError, ReconcileError, OSError):
            raise
        except Exception as error:
            # The text of the error is for the log only: it may quote what is in a Secret.
            text = f"internal error ({type(error).__name__}); the log of the resource manager has the details"
            await self._record.write(managed_resource, [conditions.apply_failed(text)])
            raise

    async def close(self) -> None:
        """Say what is still to be said."""
        await self._record.flush()

    async def _forget(self, name: Key) -> None:
        self._ownership.claim(name, ())
        self._plans.forget(name)
        await self._target.manage(name, ())

    # --- applying

    async def _manage(self, managed_resource: Object) -> Result:
        managed_resource = await self._record.with_finalizer(managed_resource)
        name = key(managed_resource)
        memory = self._plans.memory(name)
        mandate = mandate_of(managed_resource, self._settings.impersonation)
        if mandate.problem:
            return await self._refuse(managed_resource, memory, mandate.problem)
        try:
            plan = await self._plans.of(managed_resource)
        except SecretError as error:
            failure = conditions.cannot_read_secret(str(error.error))
            await self._record.write(managed_resource, [failure])
            self._telling.failure(memory, managed_resource, failure)
            raise ReconcileError(str(error)) from error
        self._ownership.claim(name, (wanted.name for wanted in plan.wanted()))

        step = Step.of(managed_resource, plan)
        leaving = self._leaving(managed_resource, memory, mandate)
        tally = Tally(refusals=list(plan.refused.values()))
        if untouched := await kept(self._target, step, leaving, look_at_all=self._ownership.look_at_all):
            step = Step.of(managed_resource, plan, kept=untouched)
            tally.refusals += untouched.values()
        work = await self._work(managed_resource, plan, step, memory, mandate)
        said: Sequence[Condition] = step.reset() if step.is_changed else []
        if step.has_new:
            managed_resource, said = await self._announce(managed_resource, step), []
        elif said and self._is_outdated(plan, work):
            # Should this process end half-way and the Secrets be changed back then, the next one must not take what
            # it finds for the work of a complete pass.
            managed_resource, said = await self._record.write(managed_resource, said), []
        if isinstance(work, str):
            tally.errors.append(work)
        else:
            await self._carry_out(name, plan, step, work=work, leaving=leaving, tally=tally)
        return await self._conclude(managed_resource, plan, step, tally=tally, said=said)

    async def _refuse(self, managed_resource: Object, memory: Memory, problem: str) -> Result:
        """Nothing may be written; only a change of the ManagedResource or of the configuration helps."""
        failure = conditions.apply_failed(problem)
        await self._record.write(managed_resource, [failure])
        self._telling.failure(memory, managed_resource, failure, at_once=True)
        return self._next_regular()

    def _next_regular(self) -> Result:
        return RequeueAfter(self._settings.sync_period * random.uniform(_EARLIEST, 2 - _EARLIEST))  # noqa: S311 - spreads load

    def _is_outdated(self, plan: Plan, work: Work | str) -> bool:
        """Whether objects are to be written, as far as can be told from memory."""
        return not isinstance(work, str) and any(
            not is_up_to_date(self._target, wanted, work) for wanted in plan.wanted()
        )

    async def _announce(self, managed_resource: Object, step: Step) -> Object:
        """List what is about to be created, so that nothing is leaked whatever happens."""
        written = await self._record.write(managed_resource, step.reset(), **{PENDING: step.before()})
        if not (written.get("status") or {}).get(PENDING):
            # The CustomResourceDefinition in this cluster is the original's, which does not have the field.
            listed = sorted_references([*all_listed(written), *step.before()])
            written = await self._record.write(written, [], resources=listed)
        return written

    async def _work(
        self, managed_resource: Object, plan: Plan, step: Step, memory: Memory, mandate: Mandate
    ) -> Work | str:
        """What all applications need to know, or why it can't be known."""
        name = key(managed_resource)
        spec = managed_resource.get("spec") or {}
        scaled = Scaled()
        if any(wanted.reference.get("kind") in SCALABLE for wanted in plan.wanted()):
            try:
                scaled = await self._autoscalers.targets()
            except (TargetReferenceError, ListError, KubeError) as error:
                return str(error)
        wanted_now = {wanted.name for wanted in plan.wanted()}
        for gone in [known for known in memory.applied if known not in wanted_now]:
            del memory.applied[gone]
        return Work(
            origin=self._ownership.origin(name),
            mandate=mandate,
            client=self._target.client_of(mandate.user),
            overwrite=Overwrite(
                labels=bool(spec.get("forceOverwriteLabels")),
                annotations=bool(spec.get("forceOverwriteAnnotations")),
            ),
            equivalences=step.equivalences,
            scaled=scaled,
            previous=step.previous,
            is_settled=step.is_settled,
            always_update=self._is_update_due(memory),
            applied=memory.applied,
            holder=lambda origin, object_key: self._ownership.holder_by_now(name, origin, object_key),
            note=partial(self._changes.note, name),
        )

    def _is_update_due(self, memory: Memory) -> bool:
        """With `alwaysUpdate` everything is written once in a sync period, but not at every event in between."""
        now = time.monotonic()
        if not self._settings.always_update or now - memory.forced_at < self._settings.sync_period * _EARLIEST:
            return False
        memory.forced_at = now
        return True

    async def _carry_out(
        self, name: Key, plan: Plan, step: Step, *, work: Work, leaving: Leaving, tally: Tally
    ) -> None:
        limit = self._settings.time_limit
        known_before = dict(work.applied)
        try:
            async with asyncio.timeout(limit):
                await self._target.manage(
                    name, plan.resources | await self._resources_of([*step.dropped, *step.carried])
                )
                at_once = asyncio.Semaphore(_AT_ONCE)
                async with asyncio.TaskGroup() as group:
                    if step.dropped:
                        group.create_task(self._remove_all(step.dropped, leaving, at_once, tally))
                    for reference in step.released:
                        group.create_task(self._release(reference, leaving, at_once, tally))
                    group.create_task(self._apply_all(plan, work, at_once, tally))
        except TimeoutError:
            tally.errors.append(
                f"the pass was not finished within {format_duration(limit)}; it goes on with the next one"
            )
        if (tally.updated or tally.created) and known_before == work.applied:
            tally.is_repair = True
            self._plans.memory(name).repaired(time.monotonic())

    async def _apply_all(self, plan: Plan, work: Work, at_once: asyncio.Semaphore, tally: Tally) -> None:
        """Stage after stage; what fails is noted, the rest goes on."""
        for stage in plan.stages:
            outstanding = [wanted for wanted in stage if not is_up_to_date(self._target, wanted, work)]
            errors = await asyncio.gather(*(self._apply_one(wanted, work, at_once, tally) for wanted in outstanding))
            tally.errors += [error for error in errors if error]

    async def _apply_one(self, wanted: Wanted, work: Work, at_once: asyncio.Semaphore, tally: Tally) -> str:
        """The text of an error, if there was one."""
        async with at_once:
            try:
                outcome = await apply(self._target, wanted, work)
            except ApplyError as error:
                return str(error)
        tally.created += outcome is Outcome.CREATED
        tally.updated += outcome is Outcome.UPDATED
        return ""

    async def _release(self, reference: Object, leaving: Leaving, at_once: asyncio.Semaphore, tally: Tally) -> None:
        async with at_once:
            error = await release(self._target, reference, leaving)
        if error is not None:
            tally.release_errors.append(error)

    async def _conclude(
        self,
        managed_resource: Object,
        plan: Plan,
        step: Step,
        *,
        tally: Tally,
        said: Sequence[Condition],
    ) -> Result:
        """Args: said: conditions that are still to be set, beside the outcome."""
        memory = self._plans.memory(key(managed_resource))
        if tally.errors and len(tally.errors) == plan.awaited and self._telling.is_transient(memory):
            self._log.info("Waiting until kinds are served whose definitions were just applied", objects=plan.awaited)
            self._telling.changes(managed_resource, tally)
            return RequeueAfter(_SERVED_SECONDS)
        if tally.errors or tally.release_errors:
            if tally.errors:
                texts = [*tally.refusals, *tally.errors]
                failure, doing = conditions.apply_failed(apply_message(texts)), "apply all new"
            else:
                failure, doing = conditions.release_failed(release_message(tally.release_errors)), "release orphaned"
            await self._record.write(managed_resource, [*said, failure])
            self._telling.changes(managed_resource, tally)
            self._telling.failure(memory, managed_resource, failure)
            raise ReconcileError(f"could not {doing} resources: {failure.message}")
        if tally.pending:
            await self._record.write(managed_resource, [*said, self._pending_condition(memory, tally)])
            self._telling.changes(managed_resource, tally)
            return self._look_again(memory, tally)
        memory.deleted.clear()
        for gone in memory.unwanted_since.keys() - step.kept:
            del memory.unwanted_since[gone]
        outcome = conditions.applied(plan.decode_errors)
        if tally.refusals:
            outcome = conditions.apply_failed(apply_message([*tally.refusals, *plan.decode_errors]))
        await self._record.conclude(
            managed_resource,
            [*said, outcome],
            resources=step.final,
            **{PENDING: None},
            secretsDataChecksum=plan.checksum,
            observedGeneration=metadata(managed_resource).get("generation"),
        )
        self._telling.changes(managed_resource, tally)
        if outcome.status != "True":
            self._telling.failure(memory, managed_resource, outcome, at_once=True)
        else:
            memory.complaint, memory.failing_since, memory.applied_at = "", None, time.time()
        return self._next_regular()

    # --- removing

    async def _leave(self, managed_resource: Object) -> Result:
        """The ManagedResource goes, or belongs to another class now."""
        name = key(managed_resource)
        memory = self._plans.memory(name)
        self._ownership.claim(name, ())
        memory.applied.clear()
        said = conditions.leaving()
        listed = all_listed(managed_resource)
        tally = Tally()
        if not (managed_resource.get("spec") or {}).get("keepObjects"):
            await self._target.manage(name, await self._resources_of(listed))
            mandate = mandate_of(managed_resource, self._settings.impersonation)
            leaving = self._leaving(managed_resource, memory, mandate)
            await self._remove_all(listed, leaving, asyncio.Semaphore(_AT_ONCE), tally)
            present = (managed_resource.get("status") or {}).get("conditions") or []
            said = [*said, self._pending_condition(memory, tally) if tally.pending else conditions.deleting(present)]
        seen = {} if is_deleting(managed_resource) else {"observedGeneration": metadata(managed_resource)["generation"]}
        managed_resource = await self._record.write(managed_resource, said, **seen)
        if tally.pending:
            if tally.is_refused:
                self._telling.failure(memory, managed_resource, self._pending_condition(memory, tally), at_once=True)
            return self._look_again(memory, tally)
        await self._record.without_finalizer(managed_resource)
        await self._forget(name)
        return Done()

    async def _remove_all(
        self, references: Sequence[Object], leaving: Leaving, at_once: asyncio.Semaphore, tally: Tally
    ) -> None:
        """One step for each; what is not gone yet is noted."""
        await self._ownership.look_at_all()

        async def one(reference: Object) -> None:
            async with at_once:
                pending = await remove(self._target, reference, leaving)
            if pending is None:
                tally.removed += 1
            else:
                tally.pending.append(pending)

        await asyncio.gather(*(one(reference) for reference in references))

    def _pending_condition(self, memory: Memory, tally: Tally) -> Condition:
        """Waiting for objects to go, or stuck, if for some time there have been nothing but errors."""
        message = tally.pending_message()
        if tally.is_refused:
            return conditions.deletion_failed(message)
        now = time.monotonic()
        if not all(pending.failed for pending in tally.pending):
            memory.stuck_since = None
        elif memory.stuck_since is None:
            memory.stuck_since = now
        if memory.stuck_since is None or now - memory.stuck_since < _STUCK_SECONDS:
            return conditions.deletion_pending(message)
        return conditions.deletion_failed(message)

    def _look_again(self, memory: Memory, tally: Tally) -> Result:
        if tally.is_refused:
            return self._next_regular()
        if memory.stuck_since is not None and time.monotonic() - memory.stuck_since >= _STUCK_SECONDS:
            raise ReconcileError(tally.pending_message())
        return RequeueAfter(_next_look(tally.pending))

    def _leaving(self, managed_resource: Object, memory: Memory, mandate: Mandate) -> Leaving:
        name = key(managed_resource)
        refused = mandate.problem
        return Leaving(
            origin=self._ownership.origin(name),
            mandate=mandate,
            client=self._target.client_of(mandate.user),
            refusal=(lambda _resource, _key: refused) if refused else self._refusal(name.namespace),
            delete_volume_claims=bool((managed_resource.get("spec") or {}).get("deletePersistentVolumeClaims")),
            garbage_collector=self._settings.garbage_collector,
            announced=only_announced(managed_resource),
            held_by_other=lambda origin, object_key: self._ownership.is_held(name, origin, object_key),
            wanted_by_other=lambda object_key: self._ownership.is_wanted_by_other(name, object_key),
            unwanted_since=memory.unwanted_since,
            deleted=memory.deleted,
            now=self._utcnow(),
            service_warnings=self._service_warnings,
            note=partial(self._changes.note, name),
            note_claims=partial(self._record.note_claims, managed_resource),
        )

    async def _resources_of(self, references: Sequence[Object]) -> set[Resource]:
        found = set()
        for api_version, kind in {(r.get("apiVersion") or "", r.get("kind") or "") for r in references}:
            try:
                found.add(await self._target.discovery.find(api_version, kind))
            except KubeError:
                continue  # the removal of its objects finds that out, too, and reports it
        return found


def _next_look(pending: Sequence[Pending]) -> float:
    """Seconds; the watch of a kind tells when an object is gone, this is for what it does not tell."""
    due = [p.due.total_seconds() for p in pending if p.due is not None]
    return min([_PENDING_SECONDS, *due])
