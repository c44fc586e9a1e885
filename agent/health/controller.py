"""The controllers `health` and `health-progressing`.

Each looks at a ManagedResource when something happened to it or to one of its objects, and once in a sync period.
What is said about objects comes from watches, so a look costs no request, and neither does a condition that tells
already what was found.

What happened to an object leads to its ManagedResource by the annotation `origin`; pods lead to the Deployments that
select them. The checks that follow are put off for a moment, so that what changes together is looked at together.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from agent.api import MANAGED_RESOURCES, MANAGED_RESOURCES_VIEW
from agent.context import Context
from agent.health.checks.deployment import Bucket, buckets
from agent.health.judged import Judged, health_form, judge_health, judge_progress, progress_form
from agent.health.objects import Objects
from agent.health.passes import LONGEST_PASS, Complain, Passes
from agent.health.pods import CountedPod, Pods
from agent.health.triggers import SOON, delay, managed_resource_matters
from agent.health.verdicts import Verdict
from agent.health.walks import HealthWalk, ProgressWalk, Walk
from agent.health.warnings import Warnings
from agent.managed_kinds import ManagedKinds, Part
from agent.status import StatusWriter
from kube.cache import Caches, Change
from kube.controller import Controller
from kube.events import EventRecorder
from kube.objects import Object
from kube.queue import CHANGE, RESYNC
from kube.resources import Resource

_DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
_SERVED_SOON = 1.0
"""Seconds from the news about a CRD until its kinds can be expected to be served."""


class _Loop:
    """What both have in common: ManagedResources come from one place, and lead to passes in the same way."""

    def __init__(
        self,
        context: Context,
        *,
        name: str,
        walk: Walk,
        objects: Objects,
        status: StatusWriter,
        complain: Complain | None = None,
    ) -> None:
        settings = context.config.controllers.health
        self._objects = objects
        self._status = status
        self.remembered = walk.remembered
        self._class = context.config.controllers.resource_class
        self._caches: Caches = context.source.caches
        self._managed_resources = self._caches.acquire(MANAGED_RESOURCES_VIEW, needed_at_start=True)
        self._unsubscribe: Callable[[], None] = lambda: None
        passes = Passes(
            walk=walk,
            status=status,
            store=self._managed_resources,
            resource_class=self._class,
            sync_period=settings.sync_period,
            now=_utcnow,
            complain=complain,
        )
        self.findings = passes.findings
        status.ask(passes.advice)
        self.controller = Controller(
            name,
            passes.reconcile,
            kind=MANAGED_RESOURCES,
            concurrency=settings.concurrent_syncs,
            time_limit=min(settings.sync_period, LONGEST_PASS),
        )

    async def start(self) -> None:
        await self._managed_resources.synced.wait()
        self._unsubscribe = self._managed_resources.subscribe(self._managed_resource_changed)

    async def close(self) -> None:
        self._unsubscribe()
        await self._caches.release(MANAGED_RESOURCES_VIEW)

    def kinds_changed(self, group: str) -> None:
        """CustomResourceDefinitions of the group came, changed or went in the target cluster."""
        for key in self._objects.waiting_for(group):
            self.controller.queue.add_after(key, _SERVED_SOON, CHANGE)

    def _managed_resource_changed(self, change: Change[Object]) -> None:
        # One that is gone is looked at as well: nothing is watched for it any more.
        if change.new is None or managed_resource_matters(change.old, change.new, resource_class=self._class):
            self.controller.queue.add(change.key, RESYNC if change.initial else CHANGE)

    def _object_changed(self, change: Change[Judged], *, existence_matters: bool) -> None:
        seconds = delay(change.old, change.new, existence_matters=existence_matters)
        if seconds is None:
            return
        for judged in (change.old, change.new):
            if judged is not None and judged.origin is not None:
                self.controller.queue.add_after(judged.origin, seconds, CHANGE)
                self._status.reconsider(judged.origin)


class HealthLoop(_Loop):
    """Keeps the condition ResourcesHealthy."""

    def __init__(self, context: Context, kinds: ManagedKinds, status: StatusWriter) -> None:
        judge = partial(judge_health, cluster_id=context.cluster_id)
        self._part: Part[Judged] = kinds.part(judge, on_change=self._changed)
        objects = Objects(part=self._part, judge=judge, form=health_form, cluster=context.target)
        walk = HealthWalk(objects=objects, warnings=Warnings(context.target.client))
        complain = partial(_complain, context.recorder)
        super().__init__(context, name="health", walk=walk, objects=objects, status=status, complain=complain)

    def _changed(self, resource: Resource, change: Change[Judged]) -> None:
        # What the first list of a kind holds is no news: who uses the kind has waited for it.
        if self._part.is_listed(resource):
            self._object_changed(change, existence_matters=True)


class ProgressLoop(_Loop):
    """Keeps the condition ResourcesProgressing."""

    def __init__(self, context: Context, kinds: ManagedKinds, status: StatusWriter) -> None:
        judge = partial(judge_progress, cluster_id=context.cluster_id)
        self._part: Part[Judged] = kinds.part(judge, on_change=self._changed, index=_bucket_of_pods)
        objects = Objects(part=self._part, judge=judge, form=progress_form, cluster=context.target)
        self._pods = Pods(client=context.target.client, caches=context.target.caches, on_change=self._pod_changed)
        walk = ProgressWalk(objects=objects, pods=self._pods)
        self.pods_of = walk.pods_of
        super().__init__(context, name="health-progressing", walk=walk, objects=objects, status=status)

    async def close(self) -> None:
        await self._pods.close()
        await super().close()

    def _changed(self, resource: Resource, change: Change[Judged]) -> None:
        if self._part.is_listed(resource):
            self._object_changed(change, existence_matters=False)

    def _pod_changed(self, pod: CountedPod) -> None:
        for bucket in buckets(pod.namespace, pod.labels):
            for _, judged in self._part.by_index(_DEPLOYMENTS, bucket):
                if judged.origin is not None and judged.pods is not None and judged.pods.select(pod.labels):
                    self.controller.queue.add_after(judged.origin, SOON, CHANGE)


def _complain(recorder: EventRecorder, managed_resource: Object, verdict: Verdict, count: int) -> None:
    """By an Event, as the condition is overwritten by the next one and tells of the first object only."""
    more = f" (and {count - 1} more)" if count > 1 else ""
    recorder.event(managed_resource, "Warning", verdict.reason, verdict.message + more)


def _bucket_of_pods(judged: Judged) -> Sequence[Bucket]:
    return (judged.pods.bucket,) if judged.pods is not None else ()


def _utcnow() -> datetime:
    return datetime.now(UTC)
