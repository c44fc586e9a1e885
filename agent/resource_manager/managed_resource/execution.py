"""Parallel application and removal of the objects of a ManagedResource, within a time limit."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Self

from agent.resource_manager.common.inputs import Inputs
from agent.resource_manager.common.service_events import warnings_about
from agent.resource_manager.context import Context
from agent.resource_manager.managed_resource.application import ApplyOptions
from agent.resource_manager.managed_resource.apply import Applier
from agent.resource_manager.managed_resource.delete_options import DeleteOptions
from agent.resource_manager.managed_resource.dependencies import Dependencies
from agent.resource_manager.managed_resource.ownership import Ownership
from agent.resource_manager.managed_resource.record import Record
from agent.resource_manager.managed_resource.remove import Remover
from agent.resource_manager.managed_resource.report import EARLIEST
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet
from agent.resource_manager.managed_resource.rules.permissions import Owner
from agent.resource_manager.managed_resource.rules.repairs import Repairs
from agent.resource_manager.managed_resource.scaling import Autoscalers
from gardener.managed_resource.inventory import InventoryDiff, all_listed
from gardener.managed_resource.plan import Plan
from gardener.managed_resource.warnings import field_validation
from kube.apply.live_objects import LiveObjects
from kube.clock import format_duration
from kube.objects import Key, Object

AT_ONCE = 10
"""Number of objects of one ManagedResource that are processed at the same time; leaves room for the others."""
_LONGEST_PASS = 180.0


@dataclass(eq=False, kw_only=True, slots=True)
class Executor:
    live: LiveObjects
    ownership: Ownership
    record: Record
    autoscalers: Autoscalers
    repairs: Repairs
    applier: Applier
    remover: Remover
    time_limit: float
    """Seconds for applying and removing; objects not reached until then are reported as failed."""

    @classmethod
    def of(
        cls,
        context: Context,
        *,
        live: LiveObjects,
        ownership: Ownership,
        dependencies: Dependencies,
        record: Record,
        inputs: Inputs,
    ) -> Self:
        """Return an executor with the settings of the configuration."""
        settings, target = context.config.controllers.managed_resource, context.target
        autoscalers = Autoscalers(target.caches, target.discovery, on_change=inputs.all_changed)
        repairs = Repairs(longest=settings.sync_period)
        return cls(
            live=live,
            ownership=ownership,
            record=record,
            autoscalers=autoscalers,
            repairs=repairs,
            applier=Applier(
                live=live,
                ownership=ownership,
                autoscalers=autoscalers,
                repairs=repairs,
                always_update=settings.sync_period * EARLIEST if settings.always_update else None,
            ),
            remover=Remover(
                live=live,
                ownership=ownership,
                record=record,
                garbage_collector=context.config.controllers.garbage_collector.enabled,
                service_warnings=partial(warnings_about, target.client),
                workload_timeout=settings.workload_removal_timeout,
                related=dependencies.related,
                clock=target.deletion_clock,
            ),
            time_limit=min(settings.sync_period, _LONGEST_PASS),
        )

    async def close(self) -> None:
        await self.autoscalers.close()

    def kinds_changed(self, group: str) -> list[Key]:
        """Handle new, changed or deleted kinds of a group; return the ManagedResources whose removals wait for one."""
        self.autoscalers.kinds_changed(group)
        return self.remover.waiting_for(group)

    def recent_repairs(self, name: Key) -> int:
        """Number of times that its objects were repaired in short succession until now."""
        return self.repairs.lately(name, time.monotonic())

    def repair_delay(self, name: Key) -> float:
        """Seconds until drift of its objects is corrected."""
        return self.repairs.delay(name, time.monotonic())

    def has_objects(self, name: Key) -> bool:
        """Whether a ManagedResource may have objects, as far as this process knows."""
        return self.applier.has_applied(name) or self.remover.is_removing(name)

    async def forget(self, name: Key) -> None:
        self.applier.forget(name)
        self.remover.forget(name)
        await self.live.manage(name, ())

    async def carry_out(
        self,
        plan: Plan,
        diff: InventoryDiff,
        apply_options: ApplyOptions,
        delete_options: DeleteOptions,
        changes: ChangeSet,
    ) -> None:
        """Apply desired objects, remove obsolete ones, and release those that are ignored now."""
        at_once = asyncio.Semaphore(AT_ONCE)
        try:
            async with asyncio.timeout(self.time_limit):
                leftover = await self.live.resources_of([*diff.unwanted, *diff.retained])
                await self.live.manage(changes.owner, plan.resources | leftover)
                async with asyncio.TaskGroup() as group:
                    if diff.unwanted:
                        group.create_task(self.remover.remove(diff.unwanted, delete_options, changes, at_once))
                    if diff.released:
                        group.create_task(self.remover.release(diff.released, delete_options, changes, at_once))
                    group.create_task(self.applier.apply(plan, apply_options, changes, at_once))
            self.ownership.tried(changes.owner, refused=changes.refused, untried=changes.untried)
        except TimeoutError:
            limit = format_duration(self.time_limit)
            changes.errors.append(f"the pass took longer than {limit}; the next one continues it")

    async def settle_ownership(
        self,
        managed_resource: Object,
        plan: Plan,
        diff: InventoryDiff,
        delete_options: DeleteOptions,
        awaited: Iterable[str],
    ) -> None:
        """Hand over claimed objects and take over released ones, before it waits for others, which may wait for it."""
        await self.remover.hand_over(diff.unwanted, delete_options, asyncio.Semaphore(AT_ONCE))
        holders = [Key(*name.split("/")) for name in awaited]
        if given_up := self.ownership.given_up_by(holders, delete_options.wanted):
            if diff.new:
                managed_resource = await self.record.announce(managed_resource, diff, [])
            owner, validation = delete_options.owner, field_validation(managed_resource)
            options = await self.applier.options(owner, managed_resource, plan, diff, field_validation=validation)
            await self.applier.take_over(plan, options, given_up)

    async def remove_all(self, owner: Owner, managed_resource: Object, changes: ChangeSet) -> None:
        """Make a step towards the removal of all objects that a ManagedResource lists."""
        listed = all_listed(managed_resource)
        options = self.remover.options(owner, managed_resource)
        changes.left = options.progress.left
        of_others = chain.from_iterable(options.related().awaited.values())
        await self.live.manage(owner.name, await self.live.resources_of([*listed, *of_others]))
        await self.remover.remove(listed, options, changes, asyncio.Semaphore(AT_ONCE))

    async def keep_all(self, owner: Owner, managed_resource: Object) -> None:
        """Leave all objects that a ManagedResource lists, without the note that changes are undone."""
        options = self.remover.options(owner, managed_resource)
        await self.remover.keep(all_listed(managed_resource), options, asyncio.Semaphore(AT_ONCE))
