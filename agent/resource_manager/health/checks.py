"""Checks of all objects of a ManagedResource, for their health or their progress.

Both process the objects in the order of the status. The first finding decides the condition; after it only memory is
consulted, since further findings are for the log alone and not worth a request.

While some objects cannot be applied (`only_applied`), those that the watches do not know are left out: another
condition already reports them as missing.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from agent.resource_manager.common.service_events import warnings_about
from agent.resource_manager.health.conditions import EVENTS_KEPT_FOR, health_condition, progress_condition
from agent.resource_manager.health.objects import Kind, NotKnown, Objects
from agent.resource_manager.health.pods import Pods
from agent.resource_manager.health.projections import NOTHING, ObjectHealth
from gardener.health.checks.registry import Rules
from gardener.health.checks.workload_pods import PodsWanted
from gardener.health.findings import (
    Finding,
    Reference,
    may_have_events,
    missing,
    pods_finding,
    progress_api_version,
    with_cause,
    with_events,
)
from kube.conditions import Condition
from kube.errors import KindNotServed
from kube.objects import Key
from kube.resources import DEPLOYMENTS
from kube.runtime.client import Client

_REMEMBERED = 1000
_NONE_KEPT_FOR = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class _Read:
    finding: Finding
    text: str
    at: float


class Warnings:
    """Warnings about objects with findings, read no more often than they would be reported.

    They are read about Services, and about workloads whose pods cannot be created. They are not watched, and a list is
    a call. So they are read for each new finding about the object, and every five minutes while it stays the same: a
    condition in which only they differ is not written more often. An empty result is soon looked up again.

    Args: now: monotonic seconds.
    """

    def __init__(self, client: Client, *, now: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now = now
        self._read: OrderedDict[Reference, _Read] = OrderedDict()

    def known(self, finding: Finding) -> str | None:
        """Return the text about the object of a finding; None if it has to be read."""
        read = self._read.get(finding.reference)
        if read is None or read.finding != finding:
            return None
        if self._now() - read.at >= (EVENTS_KEPT_FOR if read.text else _NONE_KEPT_FOR).total_seconds():
            return None
        return read.text

    async def about(self, finding: Finding) -> str:
        known = self.known(finding)
        if known is not None:
            return known
        of = finding.reference
        name = Key(of.namespace, of.name)
        text = await warnings_about(self._client, name, api_version=of.api_version, kind=of.kind)
        read = _Read(finding, text, self._now())
        self._read[of] = read
        self._read.move_to_end(of)
        if len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)
        return read.text


_SAID_BY_EVENTS = frozenset({"DaemonSet", "Job", "StatefulSet"})
_DEPLOYMENTS = DEPLOYMENTS.api_version, DEPLOYMENTS.kind


@dataclass(frozen=True, slots=True)
class Found:
    """Result of checking all objects of a ManagedResource."""

    findings: list[Finding] = field(default_factory=list)
    """Findings, in the order of the objects."""
    manual: list[str] = field(default_factory=list)
    """Manual steps that roll-outs require."""


class Check(Protocol):
    async def look(
        self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False
    ) -> Found:
        """Return all findings.

        Raises:
            KubeError: the first finding cannot be made.
            NotKnown: none of the objects is applied.
        """

    def known(self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False) -> Found:
        """Return the result up to the first finding.

        Raises:
            NotKnown: a request is necessary.
        """

    def remembered(self, reference: Reference) -> Finding | None:
        """Return the finding about one object from the watches, without a request or a new watch.

        Raises:
            NotKnown: the watches do not know it.
        """

    async def forget(self, managed_resource: Key) -> None:
        """Stop the watches of a ManagedResource."""

    def condition(self, found: Found, *, only_applied: bool = False) -> Condition:
        """Return the desired condition."""


class HealthCheck:
    def __init__(self, *, objects: Objects, pods: Pods, warnings: Warnings) -> None:
        self._objects = objects
        self._pods = pods
        self._warnings = warnings

    async def look(
        self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False
    ) -> Found:
        kinds = await self._objects.watch(managed_resource, {(r.api_version, r.kind) for r in references})
        if only_applied:
            references = self._applied(references)
        found: list[Finding] = []
        pods: PodsWanted | None = None
        for reference in references:
            kind = kinds[reference.api_version, reference.kind]
            known = self._objects.known(kind, reference)
            if known is None:
                known = await self._read(managed_resource, kind, reference, may_read=not found)
            if known.finding is not None:
                pods = pods if found else known.pods
                found.append(known.finding)
        if pods is not None:
            found[0] = await _explained(self._pods, self._warnings, managed_resource, found[0], pods)
        else:
            self._pods.forget(managed_resource)
        if found and may_have_events(found[0]):
            found[0] = with_events(found[0], await self._warnings.about(found[0]))
        return Found(found)

    def known(self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False) -> Found:
        for reference in self._applied(references) if only_applied else references:
            kept = self._objects.remembered(reference.api_version, reference)
            finding = kept.finding
            if finding is None:
                continue
            if kept.pods is not None:
                finding = _explained_from_memory(self._pods, self._warnings, managed_resource, finding, kept.pods)
            if may_have_events(finding):
                warnings = self._warnings.known(finding)
                if warnings is None:
                    raise NotKnown
                finding = with_events(finding, warnings)
            return Found([finding])
        return Found()

    def remembered(self, reference: Reference) -> Finding | None:
        kept = self._objects.remembered(reference.api_version, reference)
        if kept.finding is None or kept.pods is None:
            return kept.finding
        return with_cause(kept.finding, self._pods.known_cause(kept.pods) or "")

    async def forget(self, managed_resource: Key) -> None:
        await self._objects.watch(managed_resource, ())
        self._pods.forget(managed_resource)

    def condition(self, found: Found, *, only_applied: bool = False) -> Condition:
        return health_condition(found.findings, only_applied=only_applied)

    def _applied(self, references: Sequence[Reference]) -> list[Reference]:
        """Return the references of objects that the watches know.

        Raises:
            NotKnown: there are none.
        """
        applied = [reference for reference in references if self._objects.has(reference.api_version, reference)]
        if not applied:
            raise NotKnown
        return applied

    async def _read(self, managed_resource: Key, kind: Kind, reference: Reference, *, may_read: bool) -> ObjectHealth:
        try:
            read = await self._objects.read(managed_resource, kind, reference, may_read=may_read)
        except KindNotServed as error:
            return ObjectHealth(finding=missing(reference, unknown_kind=str(error)))
        except NotKnown:
            return NOTHING
        return ObjectHealth(finding=missing(reference)) if read is None else read


async def _explained(
    pods: Pods, warnings: Warnings, managed_resource: Key, finding: Finding, wanted: PodsWanted
) -> Finding:
    """Return the finding with its cause from the pods, or with Events if there are no pods."""
    await pods.use(managed_resource)
    if _needs_warnings(pods, finding, wanted):
        return with_events(finding, await warnings.about(finding))
    return with_cause(finding, pods.known_cause(wanted) or "")


def _explained_from_memory(
    pods: Pods, warnings: Warnings, managed_resource: Key, finding: Finding, wanted: PodsWanted
) -> Finding:
    """Return the finding with its cause from memory.

    Raises:
        NotKnown: pods are being listed, or Events have to be read.
    """
    store = pods.watch(managed_resource)
    if not store.synced.is_set():
        raise NotKnown(is_coming=True)
    if not _needs_warnings(pods, finding, wanted):
        return with_cause(finding, pods.known_cause(wanted) or "")
    text = warnings.known(finding)
    if text is None:
        raise NotKnown
    return with_events(finding, text)


def _needs_warnings(pods: Pods, finding: Finding, wanted: PodsWanted) -> bool:
    """Whether the object has no pods, and no condition explains why none can be created."""
    return finding.reference.kind in _SAID_BY_EVENTS and pods.known_count(wanted) == 0 and not pods.known_cause(wanted)


class ProgressCheck:
    """Check of roll-outs. It skips missing objects: the health check reports them."""

    def __init__(self, *, objects: Objects, pods: Pods, warnings: Warnings, rules: Rules) -> None:
        self._objects = objects
        self._pods = pods
        self._warnings = warnings
        self._rules = rules

    async def look(
        self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False
    ) -> Found:
        rolled_out = [(r, version) for r in references if (version := self._version(r)) is not None]
        names = {(version, reference.kind) for reference, version in rolled_out}
        kinds = await self._objects.watch(managed_resource, names)
        if only_applied:
            rolled_out = [(r, version) for r, version in rolled_out if self._objects.has(version, r)]
        needs_pods = False
        if _DEPLOYMENTS in names:
            needs_pods = True
            await self._pods.use(managed_resource)
        found = Found()
        for reference, version in rolled_out:
            kind, is_first = kinds[version, reference.kind], not found.findings
            known = self._objects.known(kind, reference)
            if known is None:
                known = await self._read(managed_resource, kind, reference, may_read=is_first)
            finding = known.finding
            if known.pods is not None and is_first:
                needs_pods = True
                if finding is not None:
                    finding = await _explained(self._pods, self._warnings, managed_resource, finding, known.pods)
                else:
                    finding = pods_finding(reference, known.pods, await self._pods.count(known.pods))
            if finding is not None:
                found.findings.append(finding)
            if known.manual:
                found.manual.append(known.manual)
        if not needs_pods:
            self._pods.forget(managed_resource)
        return found

    def known(self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False) -> Found:
        manual: list[str] = []
        for reference in references:
            version = self._version(reference)
            if version is None or (only_applied and not self._objects.has(version, reference)):
                continue
            kept = self._objects.remembered(version, reference)
            finding = kept.finding
            if finding is not None and kept.pods is not None:
                finding = _explained_from_memory(self._pods, self._warnings, managed_resource, finding, kept.pods)
            elif kept.pods is not None:
                pods = self._pods.watch(managed_resource)
                count = self._pods.known_count(kept.pods)
                if count is None:
                    raise NotKnown(is_coming=not pods.synced.is_set())
                finding = pods_finding(reference, kept.pods, count)
            if finding is not None:
                return Found([finding])
            if kept.manual:
                manual.append(kept.manual)
        return Found([], manual)

    def remembered(self, reference: Reference) -> Finding | None:
        version = self._version(reference)
        if version is None:
            return None
        kept = self._objects.remembered(version, reference)
        if kept.pods is None:
            return kept.finding
        if kept.finding is not None:
            return with_cause(kept.finding, self._pods.known_cause(kept.pods) or "")
        count = self._pods.known_count(kept.pods)
        return None if count is None else pods_finding(reference, kept.pods, count)

    def manual(self, reference: Reference) -> str:
        """Return the manual step that the roll-out of an object requires; empty if none is known.

        Raises:
            NotKnown: the watches do not know the object.
        """
        version = self._version(reference)
        return "" if version is None else self._objects.remembered(version, reference).manual

    def pods_of(self, reference: Reference) -> int | None:
        """Return the number of pods of a Deployment; None if the watches do not know it.

        Raises:
            NotKnown: the watches do not know the object.
        """
        version = self._version(reference)
        kept = self._objects.remembered(version, reference) if version is not None else NOTHING
        if kept.pods is None or reference.kind != DEPLOYMENTS.kind:
            return None
        return self._pods.known_count(kept.pods)

    async def forget(self, managed_resource: Key) -> None:
        await self._objects.watch(managed_resource, ())
        self._pods.forget(managed_resource)

    def condition(self, found: Found, *, only_applied: bool = False) -> Condition:
        return progress_condition(found.findings, found.manual, only_applied=only_applied)

    def _version(self, reference: Reference) -> str | None:
        return progress_api_version(reference, rules=self._rules)

    async def _read(self, managed_resource: Key, kind: Kind, reference: Reference, *, may_read: bool) -> ObjectHealth:
        with suppress(KindNotServed, NotKnown):
            return await self._objects.read(managed_resource, kind, reference, may_read=may_read) or NOTHING
        return NOTHING
