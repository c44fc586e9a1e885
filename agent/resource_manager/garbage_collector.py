"""The controller `garbage-collector`: deletes ConfigMaps and Secrets without references; see `gardener.references`.

A round starts when this process begins to lead, then once per sync period: list candidates, drop those with references,
delete the rest. Nothing is watched: references are read when needed, which is seldom.

A list that fails ends the round before any deletion, since a missed reference would delete an object that pods need.
Only a kind that is gone (see `kube.runtime.kind_definitions`) needs no list. Only metadata are read, page by page, and
only the candidates are kept.

Objects change during a round. Each one is deleted only as listed (uid and resourceVersion), so a changed or recreated
one stays. A new reference does not change its target; therefore objects are deleted in portions, and just before each
portion all references in its namespaces are read once more.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import structlog
from prometheus_client import Counter

from agent.resource_manager.context import Context
from config.resource_manager.controllers import GarbageCollector
from gardener.api.kinds import MANAGED_RESOURCES, PROMETHEUSES
from gardener.keys import GARBAGE_COLLECTABLE
from gardener.references import CONFIG_MAP, SECRET, Name, references
from kube.clock import parse_time, utc_now
from kube.errors import Conflict, KindNotServed, KubeError, NotFound
from kube.objects import Key, Object, is_deleting, key, metadata, uid
from kube.resources import (
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    SECRETS,
    STATEFUL_SETS,
    Resource,
)
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError, RequeueAfter, Result
from kube.runtime.kind_definitions import require_gone
from kube.runtime.loop import ControlLoop

SELECTOR = f"{GARBAGE_COLLECTABLE}=true"
RESOURCES = {SECRET: SECRETS, CONFIG_MAP: CONFIG_MAPS}
"""Kinds in the order in which they are listed."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An object as listed: it is deleted only while unchanged."""

    name: Name
    uid: str
    resource_version: str


def candidates(kind: str, objects: Iterable[Object], *, now: datetime, minimum_age: float) -> Iterator[Candidate]:
    """Return the objects of at least the minimum age, except those being deleted already."""
    for obj in objects:
        created: str = metadata(obj).get("creationTimestamp") or ""
        if is_deleting(obj) or not created or parse_time(created) > now - timedelta(seconds=minimum_age):
            continue
        found = key(obj)
        yield Candidate(Name(kind, found.namespace, found.name), uid(obj), metadata(obj).get("resourceVersion") or "")


objects_total = Counter(
    "resource_manager_garbage_collector_objects_total",
    "Number of labelled ConfigMaps and Secrets that were old enough to be collected, by result.",
    ("kind", "result"),
)


class Outcome(StrEnum):
    IN_USE = "in_use"
    DELETED = "deleted"
    CHANGED = "changed"
    """Changed or recreated since it was listed, so it stays."""
    FAILED = "failed"
    DRY_RUN = "dry_run"
    """It would have been deleted."""


def count(kind: str, outcome: Outcome, number: int = 1) -> None:
    objects_total.labels(kind, outcome).inc(number)


def initialize_metrics() -> None:
    """Create all series at the start, so that their first increase is seen."""
    for kind in RESOURCES:
        for outcome in Outcome:
            count(kind, outcome, 0)


USERS = (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS, PODS, CRON_JOBS, MANAGED_RESOURCES, PROMETHEUSES)
"""Kinds whose objects refer to ConfigMaps and Secrets by annotations, in the order in which they are listed."""

_PORTION = 500
"""Number of objects that are deleted between two reads of the references."""
_AT_ONCE = 20
_SINGLE_NAMESPACES = 5
"""Largest number of namespaces that are read one by one; for more, all are read together."""
_SHOWN = 50
"""Number of names in a log entry or an error."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

Unused = dict[Name, Candidate]


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    settings: GarbageCollector
    namespaces: Sequence[str]
    """The only namespaces that are touched; empty for all."""
    utcnow: Callable[[], datetime] = utc_now

    async def reconcile(self, _: Key) -> Result:
        """Make one round.

        Raises:
            ReconcileError: a list failed, or objects could not be deleted.
        """
        unused = await self._candidates()
        if unused:
            old_enough = set(unused)
            await self._drop_used(unused)
            errors = await (self._report_dry_run(unused) if self.settings.dry_run else self._delete(unused))
            for name in old_enough - unused.keys():
                count(name.kind, Outcome.IN_USE)
            if errors:
                raise ReconcileError(_summary(errors))
        return RequeueAfter(self.settings.sync_period)

    # --- reading

    async def _candidates(self) -> Unused:
        found: Unused = {}
        for kind, resource in RESOURCES.items():
            try:
                async for page in self._pages(resource, self.namespaces, SELECTOR):
                    old = candidates(kind, page, now=self.utcnow(), minimum_age=self.settings.minimum_object_lifetime)
                    found.update((candidate.name, candidate) for candidate in old)
            except (KubeError, ValueError) as error:
                raise ReconcileError(f"failed listing {kind}s: {error}") from error
        return found

    async def _drop_used(self, unused: Unused) -> None:
        """Remove objects that have references now."""
        namespaces: Collection[str] = {name.namespace for name in unused}
        if len(namespaces) > _SINGLE_NAMESPACES:
            namespaces = self.namespaces
        for resource in USERS:
            if not unused:
                return
            try:
                await self._drop_used_by(resource, sorted(namespaces), unused)
            except KubeError as error:
                gvk = f"{resource.group}/{resource.version}, Kind={resource.kind}"
                raise ReconcileError(f"failed listing objects of gvk {gvk}: {error}") from error

    async def _drop_used_by(self, resource: Resource, namespaces: Collection[str], unused: Unused) -> None:
        try:
            async for page in self._pages(resource, namespaces):
                for name in (name for obj in page for name in references(obj)):
                    unused.pop(name, None)
        except KindNotServed:
            await require_gone(self.client, resource.api_version, resource.kind)

    async def _pages(
        self, resource: Resource, namespaces: Collection[str], label_selector: str = ""
    ) -> AsyncIterator[Sequence[Object]]:
        for namespace in namespaces or ("",):
            async for page in self.client.pages(resource, Selection(namespace, label_selector), form=Form.METADATA):
                yield page

    # --- deleting

    async def _report_dry_run(self, unused: Unused) -> Sequence[str]:
        _log("Dry run: would delete unreferenced objects", unused)
        for name in unused:
            count(name.kind, Outcome.DRY_RUN)
        return ()

    async def _delete(self, unused: Unused) -> Sequence[str]:
        """Delete the unused objects, and return errors; remove from `unused` those that are in use after all."""
        errors: list[str] = []
        for portion in _portions(unused):
            chosen = dict(portion)
            await self._drop_used(chosen)
            for name in portion.keys() - chosen.keys():
                del unused[name]
            at_once = asyncio.Semaphore(_AT_ONCE)
            outcomes = await asyncio.gather(*(self._delete_one(each, at_once, errors) for each in chosen.values()))
            deleted = [name for name, outcome in zip(chosen, outcomes, strict=True) if outcome is Outcome.DELETED]
            _log("Deleted unreferenced objects", deleted)
            for name, outcome in zip(chosen, outcomes, strict=True):
                count(name.kind, outcome)
        return errors

    async def _delete_one(self, candidate: Candidate, at_once: asyncio.Semaphore, errors: list[str]) -> Outcome:
        name = candidate.name
        async with at_once:
            try:
                await self.client.delete(
                    RESOURCES[name.kind],
                    Key(name.namespace, name.name),
                    uid=candidate.uid,
                    resource_version=candidate.resource_version,
                )
            except NotFound:
                return Outcome.DELETED  # by another client
            except Conflict:
                return Outcome.CHANGED
            except KubeError as error:
                errors.append(str(error))
                return Outcome.FAILED
        return Outcome.DELETED


def _portions(unused: Unused) -> Iterator[Unused]:
    """Split by namespaces, so that each portion only needs the references in few of them."""
    names = sorted(unused, key=lambda name: (name.namespace, name.kind, name.name))
    for start in range(0, len(names), _PORTION):
        yield {name: unused[name] for name in names[start : start + _PORTION]}


def _log(message: str, names: Collection[Name]) -> None:
    """Log one entry per kind and namespace."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in names:
        groups[name.kind, name.namespace].append(name.name)
    for (kind, namespace), found in groups.items():
        log.info(message, kind=kind, objects_in=namespace, names=found[:_SHOWN], count=len(found))


def _summary(errors: Sequence[str]) -> str:
    if len(errors) == 1:
        return f"Could not delete all unused resources: 1 error occurred: {errors[0]}"
    more = [f"and {len(errors) - _SHOWN} more"] if len(errors) > _SHOWN else []
    shown = ", ".join([*errors[:_SHOWN], *more])
    return f"Could not delete all unused resources: {len(errors)} errors occurred: [{shown}]"


def declare(context: Context) -> ControlLoop:
    settings, target = context.config.controllers.garbage_collector, context.target
    initialize_metrics()
    loop = ControlLoop(
        "garbage-collector",
        time_limit=settings.sync_period,
        max_backoff=settings.sync_period,
        initial_keys=[Key("", "round")],
    )
    return loop.reconciled_by(
        Reconciler(client=target.client, settings=settings, namespaces=target.namespaces, utcnow=target.deletion_clock)
    )
