"""Application of the objects of a ManagedResource."""

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from agent.resource_manager.managed_resource.application import (
    Application,
    ApplyOptions,
    Failure,
    without_its_secrets,
)
from agent.resource_manager.managed_resource.ownership import Ownership
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet
from agent.resource_manager.managed_resource.rules.permissions import Owner
from agent.resource_manager.managed_resource.rules.repairs import Repairs
from agent.resource_manager.managed_resource.scaling import SCALABLE, Autoscalers
from gardener import keys
from gardener.conditions import RESOURCES_APPLIED
from gardener.managed_resource import jobs
from gardener.managed_resource.autoscaling import Scaled
from gardener.managed_resource.ignored_fields import IgnoredFields
from gardener.managed_resource.inventory import InventoryDiff, only_announced
from gardener.managed_resource.merge import Overwrite
from gardener.managed_resource.plan import Plan, PlannedObject
from gardener.managed_resource.warnings import ObjectWarnings, stored_warnings
from kube.apply.application import for_each
from kube.apply.live_objects import LiveObjects
from kube.objects import Key, Object, annotations, condition
from kube.runtime.yielding import Yielding
from kube.write_mode import FieldValidation

_AT_A_STRETCH = 64
"""Number of objects that are compared with memory before other tasks may run."""


@dataclass(eq=False, kw_only=True, slots=True)
class Applier:
    """Remembers applied objects. That memory can be lost at any time: then the cluster is read once."""

    live: LiveObjects
    ownership: Ownership
    autoscalers: Autoscalers
    repairs: Repairs
    always_update: float | None
    """Seconds between two writes of all objects, despite events in between; None if only differences are written."""
    _applied: dict[Key, dict[str, bytes]] = field(default_factory=dict, init=False)
    _warnings: dict[Key, dict[str, ObjectWarnings]] = field(default_factory=dict, init=False)
    _forced_at: dict[Key, float] = field(default_factory=dict, init=False)

    def has_applied(self, name: Key) -> bool:
        return bool(self._applied.get(name))

    def forget(self, name: Key) -> None:
        """Forget a ManagedResource whose objects are about to be removed, or are gone."""
        self._applied.pop(name, None)
        self._warnings.pop(name, None)
        self._forced_at.pop(name, None)
        self.repairs.forget(name)

    async def options(
        self,
        owner: Owner,
        managed_resource: Object,
        plan: Plan,
        diff: InventoryDiff,
        *,
        field_validation: FieldValidation,
    ) -> ApplyOptions:
        """Return the settings of a pass.

        Raises:
            ListError, KubeError: the autoscalers are unknown, so nothing may be applied.
        """
        spec = managed_resource.get("spec") or {}
        scaled = Scaled()
        if any(wanted.reference.get("kind") in SCALABLE for wanted in plan.wanted()):
            scaled = await self.autoscalers.targets()
        applied = self._applied.setdefault(owner.name, jobs.digests(managed_resource))
        if owner.name not in self._warnings:
            self._warnings[owner.name] = stored_warnings(managed_resource)
        warnings = self._warnings[owner.name]
        names = {wanted.name for wanted in plan.wanted()}
        for memory in (applied, warnings):
            for gone in memory.keys() - names:
                del memory[gone]
        return ApplyOptions(
            owner=owner,
            client=self.live.client_of(owner.identity.user),
            overwrite=Overwrite(
                labels=bool(spec.get("forceOverwriteLabels")), annotations=bool(spec.get("forceOverwriteAnnotations"))
            ),
            adopt=annotations(managed_resource).get(keys.ADOPT) or "",
            listed=diff.previous.keys() - only_announced(managed_resource),
            reported=(condition(managed_resource, RESOURCES_APPLIED) or {}).get("message") or "",
            equivalences=diff.equivalences,
            scaled=scaled,
            previous=diff.previous,
            is_settled=diff.is_settled,
            always_update=self._is_update_due(owner.name),
            applied=applied,
            warnings=warnings,
            ignored_fields=IgnoredFields.of(managed_resource),
            field_validation=field_validation,
        )

    def _is_update_due(self, name: Key) -> bool:
        now = time.monotonic()
        if self.always_update is None or now - self._forced_at.get(name, float("-inf")) < self.always_update:
            return False
        self._forced_at[name] = now
        return True

    def is_up_to_date(self, plan: Plan, options: ApplyOptions) -> bool:
        """Whether memory shows that no write is necessary."""
        return all(
            application is not None and application.is_up_to_date()
            for application in (self._application(wanted, options) for wanted in plan.wanted())
        )

    def _application(self, wanted: PlannedObject, options: ApplyOptions) -> Application | None:
        """Return the application of an object; None if it cannot be applied."""
        if wanted.problem or wanted.resource is None:
            return None
        return Application(wanted, wanted.resource, options, live=self.live, ownership=self.ownership)

    async def take_over(self, plan: Plan, options: ApplyOptions, names: Collection[str]) -> None:
        """Stamp those of these objects, by object key, that their holders have given up.

        An object that cannot be stamped stays unchanged: its application follows, or fails, in its turn.
        """
        for wanted in plan.wanted():
            is_asked_for = wanted.name in names and not wanted.is_ignored
            application = self._application(wanted, options) if is_asked_for else None
            if application is not None:
                await application.take_over()

    async def apply(self, plan: Plan, options: ApplyOptions, changes: ChangeSet, at_once: asyncio.Semaphore) -> None:
        """Apply stage after stage; failures are noted, and the rest continues."""
        before = dict(options.applied)
        yielding = Yielding()

        async def apply_one(each: tuple[PlannedObject, Application | None]) -> str:
            """Return the text of an error; empty on success."""
            wanted, application = each
            async with at_once:
                await yielding.after_long()
                failure = Failure(wanted.problem) if application is None else await application.run(changes)
                if failure is None:
                    return ""
                (changes.untried if failure.may_pass else changes.refused).add(wanted.name)
                return await without_its_secrets(failure.text, wanted)

        try:
            for stage in plan.stages:
                outstanding = []
                for position, wanted in enumerate(stage):
                    if position % _AT_A_STRETCH == 0:
                        await yielding.after_long()
                    application = self._application(wanted, options)
                    if application is None or not application.is_up_to_date():
                        outstanding.append((wanted, application))
                changes.looked_at += len(outstanding)
                changes.errors += filter(None, await for_each(apply_one, outstanding))
        finally:
            changes.warnings = dict(options.warnings)
            changes.jobs = jobs.entries(plan.wanted(), options.applied)
            changes.is_repair = bool(changes.created or changes.updated) and before == options.applied
            if changes.is_repair:
                self.repairs.add(options.owner.name, time.monotonic())
