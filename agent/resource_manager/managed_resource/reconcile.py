"""One pass over a ManagedResource.

    ignored?                     report that, and leave everything unchanged
    deleted, of another class?   remove listed objects, then the finalizer
    otherwise                    finalizer, plan, exclude restricted objects, announce new objects,
                                 apply and remove, store the applied version, write the result into the status

The inventory in the status is the only memory that outlives this process (see `inventory`). It is written before the
first object is created, so nothing is ever leaked, and once more at the end together with the conditions. Without
changes nothing is written, and without work nothing is requested.
"""

import asyncio
from dataclasses import dataclass

from agent.resource_manager.managed_resource.application import ApplyOptions
from agent.resource_manager.managed_resource.dependencies import Dependencies
from agent.resource_manager.managed_resource.execution import AT_ONCE, Executor
from agent.resource_manager.managed_resource.ownership import Ownership
from agent.resource_manager.managed_resource.plans import LargePlanError, Plans, SecretError
from agent.resource_manager.managed_resource.record import Record, StatusTooLargeError
from agent.resource_manager.managed_resource.remove import restricted_objects
from agent.resource_manager.managed_resource.report import Reporter
from agent.resource_manager.managed_resource.rules.permissions import Owner
from agent.resource_manager.managed_resource.scaling import ListError
from gardener import keys
from gardener.managed_resource import conditions
from gardener.managed_resource.ignored_fields import IgnoredFields
from gardener.managed_resource.inventory import InventoryDiff
from gardener.managed_resource.messages import dependants_message, dependencies_message, refusal_message
from gardener.managed_resource.warnings import FieldValidationError, annotation_warnings, field_validation
from gardener.responsibility import is_ignored, is_responsible, must_wait
from kube.conditions import Condition, conditions_of
from kube.errors import KubeError
from kube.objects import Key, Object, annotations, finalizers, is_deleting, key, metadata
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.priorities import LAST

_WAIT_SECONDS = 30.0


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    resource_class: str
    record: Record
    plans: Plans
    ownership: Ownership
    dependencies: Dependencies
    executor: Executor
    reporter: Reporter

    async def reconcile(self, name: Key) -> Result:
        self.reporter.start(name)
        self.plans.begin(name)
        managed_resource = self.record.get(name)
        if managed_resource is None:
            await self._forget(name)
            return Done()
        operation = annotations(managed_resource).get(keys.OPERATION)
        if operation == keys.OPERATION_WAIT_FOR_STATE:
            self.ownership.refused(name)
            return Done()
        if operation == keys.OPERATION_RECONCILE:
            managed_resource = await self.record.patch(managed_resource, {"annotations": {keys.OPERATION: None}})
        if is_deleting(managed_resource):
            return await self._remove_all(managed_resource)
        if is_ignored(managed_resource):
            self.ownership.refused(name)
            await self.record.write(managed_resource, conditions.ignored())
            return Done()
        if not is_responsible(managed_resource, resource_class=self.resource_class):
            return await self._remove_all(managed_resource) if self._has_objects(managed_resource) else Done()
        if must_wait(managed_resource, resource_class=self.resource_class):
            self.ownership.refused(name)
            return RequeueAfter(_WAIT_SECONDS)
        try:
            return await self._manage(managed_resource)
        except StatusTooLargeError as error:
            return await self._refuse(managed_resource, str(error))
        except (KubeError, ReconcileError, OSError):
            raise
        except Exception as error:
            # The text of the error is for the log only: it may quote content of a Secret.
            text = f"internal error ({type(error).__name__}); the log of the resource manager has the details"
            await self.record.write(managed_resource, [conditions.failed(conditions.APPLY_FAILED, text)])
            raise

    def _has_objects(self, managed_resource: Object) -> bool:
        """Whether there may be objects of a ManagedResource that is not ours any more."""
        is_known = self.executor.has_objects(key(managed_resource))
        return is_known or self.record.finalizer in finalizers(managed_resource)

    async def _forget(self, name: Key) -> None:
        self.ownership.claim(name, ())
        self.plans.forget(name)
        self.reporter.forget(name)
        self.record.forget(name)
        self.dependencies.forget(name)
        await self.executor.forget(name)

    # --- applying

    async def _manage(self, managed_resource: Object) -> Result:
        managed_resource = await self.record.add_finalizer(managed_resource)
        owner = self.ownership.owner_of(managed_resource)
        if refusal := self._refusal(managed_resource, owner):
            return await self._refuse(managed_resource, refusal.message, reason=refusal.reason)
        try:
            validation = field_validation(managed_resource)
        except FieldValidationError as error:
            return await self._refuse(managed_resource, str(error))
        try:
            plan = await self.plans.of(managed_resource)
        except LargePlanError as error:
            return RequeueAfter(error.seconds, LAST)  # after all other work
        except SecretError as error:
            self.ownership.refused(owner.name)
            await self.reporter.fail(managed_resource, conditions.failed(conditions.CANNOT_READ, str(error.error)))
            raise ReconcileError(str(error)) from error
        wanted = frozenset(each.name for each in plan.wanted())
        self._claim(owner.name, wanted)

        changes = self.reporter.change_set(owner.name)
        changes.restricted += plan.restricted.values()
        changes.remarks = annotation_warnings(managed_resource, plan.references)
        delete_options = self.executor.remover.options(owner, managed_resource, wanted=wanted)
        changes.left = delete_options.progress.left
        diff = InventoryDiff.of(managed_resource, plan)
        if not diff.is_settled and (unmet := self.dependencies.unmet(managed_resource)):
            await self.executor.settle_ownership(managed_resource, plan, diff, delete_options, unmet)
            self.ownership.refused(owner.name)
            return await self.reporter.wait(managed_resource, conditions.waiting(dependencies_message(unmet)))
        if restricted := await restricted_objects(diff, delete_options, asyncio.Semaphore(AT_ONCE)):
            diff = InventoryDiff.of(managed_resource, plan, restricted=restricted)
            changes.restricted += restricted.values()
        apply_options: ApplyOptions | None = None
        try:
            apply_options = await self.executor.applier.options(
                owner, managed_resource, plan, diff, field_validation=validation
            )
        except (ListError, KubeError) as error:
            changes.errors.append(str(error))

        is_retry = self.reporter.is_retry(managed_resource, plan)
        reset = conditions.reset(conditions_of(managed_resource)) if diff.is_changed and not is_retry else []
        if diff.new:
            managed_resource, reset = await self.record.announce(managed_resource, diff, reset), []
        elif reset and apply_options is not None and not self.executor.applier.is_up_to_date(plan, apply_options):
            # If this process ends half-way and the Secrets are then changed back, the next one must not take the
            # current objects for the work of a complete pass.
            managed_resource, reset = await self.record.write(managed_resource, reset), []
        if apply_options is not None:
            try:
                await self.executor.carry_out(plan, diff, apply_options, delete_options, changes)
            finally:
                self.reporter.list(changes)
        if changes.is_complete:
            self.executor.remover.finish(owner.name, restricted=diff.restricted, wanted=wanted)
        return await self.reporter.conclude(managed_resource, plan, diff, changes, reset)

    def _claim(self, name: Key, wanted: frozenset[str]) -> None:
        """Set the claims, which are known now."""
        was_unknown = name in self.plans.unknown
        self.ownership.claim(name, wanted)
        if was_unknown:
            self.dependencies.planned(name)

    async def _refuse(self, managed_resource: Object, problem: str, *, reason: str = conditions.APPLY_FAILED) -> Result:
        self.ownership.refused(key(managed_resource))
        return await self.reporter.refuse(managed_resource, problem, reason=reason)

    def _refusal(self, managed_resource: Object, owner: Owner) -> Condition | None:
        """Return the reason why nothing may be applied for it; None if there is none."""
        if owner.identity.problem:
            return conditions.failed(conditions.APPLY_FAILED, owner.identity.problem)
        if problem := self.dependencies.problem(managed_resource):
            return conditions.failed(conditions.INVALID_DEPENDENCIES, problem)
        if problems := IgnoredFields.of(managed_resource).problems:
            return conditions.failed(conditions.APPLY_FAILED, refusal_message(problems))
        return None

    # --- removing

    async def _remove_all(self, managed_resource: Object) -> Result:
        """Remove the objects of a ManagedResource that is deleted, or belongs to another class now."""
        name = key(managed_resource)
        keeps_objects = (managed_resource.get("spec") or {}).get("keepObjects")
        if is_deleting(managed_resource) and not keeps_objects and (others := self.dependencies.dependants(name)):
            return await self.reporter.wait(managed_resource, conditions.deletion_pending(dependants_message(others)))
        self.ownership.claim(name, ())
        self.executor.applier.forget(name)
        changes, outcome = self.reporter.change_set(name), conditions.being_removed()
        if not keeps_objects:
            try:
                await self.executor.remove_all(self.ownership.owner_of(managed_resource), managed_resource, changes)
            finally:
                self.reporter.list(changes)
            outcome.append(self.reporter.removal(changes, conditions_of(managed_resource)))
        elif is_deleting(managed_resource):
            await self.executor.keep_all(self.ownership.owner_of(managed_resource), managed_resource)
        seen = {} if is_deleting(managed_resource) else {"observedGeneration": metadata(managed_resource)["generation"]}
        managed_resource = await self.record.write(managed_resource, outcome, **seen)
        self.reporter.held_back(managed_resource, changes)
        if changes.pending:
            self.reporter.removal_failed(managed_resource, outcome[-1])
            return self.reporter.look_again(changes)
        await self.record.remove_finalizer(managed_resource)
        await self._forget(name)
        return Done()
