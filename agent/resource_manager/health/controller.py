"""The controllers `health` and `health-progressing`.

Each checks a ManagedResource when it or one of its objects changes, and once per sync period. The state of objects
comes from watches, so a check costs no request, and neither does a condition that is stored already.

The annotation `origin` maps a changed object to its ManagedResource; pods map to the Deployments that select them. The
resulting checks are delayed for a moment, so that one check covers simultaneous changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from agent.resource_manager.common.inputs import Inputs
from agent.resource_manager.common.views import MANAGED_RESOURCES_VIEW
from agent.resource_manager.context import Context
from agent.resource_manager.health.checks import Check, HealthCheck, ProgressCheck, Warnings
from agent.resource_manager.health.objects import Objects
from agent.resource_manager.health.pods import CountedPod, Pods
from agent.resource_manager.health.predicates import calls_for_check, delay, pod_delay
from agent.resource_manager.health.projections import (
    ObjectHealth,
    health_form,
    progress_form,
    project_health,
    project_progress,
)
from agent.resource_manager.health.reconcile import LONGEST_PASS, LastingProblems, Reconciler
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.health.checks.workload_pods import Bucket, buckets
from kube.apply.kinds import ManagedKinds, Part
from kube.objects import Object
from kube.resources import DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS, Resource
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, Queue, enqueue
from kube.runtime.predicates import any_of, went
from kube.runtime.priorities import CHANGE
from kube.runtime.status import StatusWriter

C = TypeVar("C", bound=Check)

_WORKLOADS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS, JOBS)
_SERVED_SOON = 1.0
"""Seconds from the change of a CRD until its kinds should be served."""


@dataclass(frozen=True, slots=True)
class Declared(Generic[C]):
    loop: ControlLoop
    reconciler: Reconciler
    check: C


def declare_health(context: Context, kinds: ManagedKinds, status: StatusWriter) -> Declared[HealthCheck]:
    """Declare the controller of the condition ResourcesHealthy."""
    loop, inputs = _control_loop(context, "health"), Inputs()
    rules = context.health_rules
    project = partial(project_health, cluster_id=context.cluster_id, rules=rules)
    part: Part[ObjectHealth]
    declared: Declared[HealthCheck]

    def object_changed(resource: Resource, change: Change[ObjectHealth]) -> None:
        _note_origins(inputs, change)
        # The first list of a kind brings no changes: its users have waited for it.
        if part.is_listed(resource):
            _enqueue_origin(declared, status, change, counts_existence=True)

    part = kinds.part(project, on_change=object_changed, index=bucket_of_pods)
    pods = _pods(context, loop, part, inputs)
    objects = Objects(part=part, project=project, form=partial(health_form, rules=rules), cluster=context.target)
    check = HealthCheck(objects=objects, pods=pods, warnings=Warnings(context.target.client))
    lasting = LastingProblems(context.recorder)
    declared = _declared(context, loop, objects, check, status, inputs=inputs, lasting=lasting)
    return declared


def declare_progress(context: Context, kinds: ManagedKinds, status: StatusWriter) -> Declared[ProgressCheck]:
    """Declare the controller of the condition ResourcesProgressing."""
    loop, inputs = _control_loop(context, "health-progressing"), Inputs()
    rules = context.health_rules
    project = partial(project_progress, cluster_id=context.cluster_id, rules=rules)
    part: Part[ObjectHealth]
    declared: Declared[ProgressCheck]

    def object_changed(resource: Resource, change: Change[ObjectHealth]) -> None:
        _note_origins(inputs, change)
        if part.is_listed(resource):
            _enqueue_origin(declared, status, change, counts_existence=False)

    part = kinds.part(project, on_change=object_changed, index=bucket_of_pods)
    pods = _pods(context, loop, part, inputs)
    objects = Objects(part=part, project=project, form=partial(progress_form, rules=rules), cluster=context.target)
    warnings = Warnings(context.target.client)
    check = ProgressCheck(objects=objects, pods=pods, warnings=warnings, rules=rules)
    declared = _declared(context, loop, objects, check, status, inputs=inputs)
    return declared


def _pods(context: Context, loop: ControlLoop, part: Part[ObjectHealth], inputs: Inputs) -> Pods:
    """Return pods whose changes lead to checks of the workloads that select them."""

    def pod_changed(pod: CountedPod, counts: bool) -> None:
        for bucket in buckets(pod.namespace, pod.labels):
            for _, kept in (found for kind in _WORKLOADS for found in part.by_index(kind, bucket)):
                seconds = pod_delay(kept, pod, counts=counts)
                if kept.origin is not None and seconds is not None:
                    inputs.changed(kept.origin)
                    loop.queue.add_after(kept.origin, seconds, CHANGE)

    target = context.target
    return Pods(loop, client=target.client, caches=target.caches, on_change=pod_changed, on_list=inputs.all_changed)


def bucket_of_pods(kept: ObjectHealth) -> Sequence[Bucket]:
    return (kept.pods.bucket,) if kept.pods is not None else ()


def _control_loop(context: Context, name: str) -> ControlLoop:
    settings = context.config.controllers.health
    time_limit = min(settings.sync_period, LONGEST_PASS)
    return ControlLoop(
        name, kind=MANAGED_RESOURCES, workers=settings.concurrent_syncs, time_limit=time_limit, is_repeatable=True
    )


def _declared(
    context: Context,
    loop: ControlLoop,
    objects: Objects,
    check: C,
    status: StatusWriter,
    *,
    inputs: Inputs,
    lasting: LastingProblems | None = None,
) -> Declared[C]:
    """Declare the common part: both use the same ManagedResources, and queue them in the same way."""
    controllers = context.config.controllers

    # A deleted ManagedResource needs a pass as well: it ends the watches for it.
    enqueue_relevant = enqueue(when=any_of(went, calls_for_check(resource_class=controllers.resource_class)))

    def changed(queue: Queue, change: Change[Object]) -> None:
        inputs.changed(change.key)
        if change.new is None or not reconciler.is_waiting(change.new):
            enqueue_relevant(queue, change)

    def kinds_changed(group: str) -> None:
        inputs.all_changed()
        for user in objects.waiting_for(group):
            loop.queue.add_after(user, _SERVED_SOON, CHANGE)

    reconciler = Reconciler(
        check=check,
        inputs=inputs,
        status=status,
        store=loop.watch(context.source.caches, MANAGED_RESOURCES_VIEW, changed),
        resource_class=controllers.resource_class,
        sync_period=controllers.health.sync_period,
        while_failing=controllers.health.check_while_failing,
        lasting=lasting,
    )
    status.ask(reconciler.advice)
    loop.on_kinds_changed(kinds_changed)
    return Declared(loop.reconciled_by(reconciler), reconciler, check)


def _note_origins(inputs: Inputs, change: Change[ObjectHealth]) -> None:
    if change.old != change.new:
        for kept in (change.old, change.new):
            if kept is not None and kept.origin is not None:
                inputs.changed(kept.origin)


def _enqueue_origin(
    declared: Declared[C], status: StatusWriter, change: Change[ObjectHealth], *, counts_existence: bool
) -> None:
    seconds = delay(change.old, change.new, counts_existence=counts_existence)
    if seconds is None:
        return
    for kept in (change.old, change.new):
        if kept is not None and kept.origin is not None:
            if not declared.reconciler.waits(kept.origin):
                declared.loop.queue.add_after(kept.origin, max(seconds, status.patience), CHANGE)
            status.reconsider(kept.origin)
