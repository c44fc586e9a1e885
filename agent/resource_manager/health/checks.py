"""One look at all objects of a ManagedResource, for their health or their progress.

Both go through the objects in the order in which the status lists them. The first finding decides the condition; from
there on only what is in memory is looked at, since more findings are for the log alone and not worth a request.

While some objects can't be applied (`only_applied`), those that the watches don't know are left out: another condition
reports already that they are missing.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from agent.resource_manager.common.service_events import warnings_about
from agent.resource_manager.health.conditions import EVENTS_KEPT_FOR, health_condition, progress_condition
from agent.resource_manager.health.objects import Kind, NotKnown, Objects
from agent.resource_manager.health.pods import Pods
from agent.resource_manager.health.projections import NOTHING, ObjectHealth
from gardener.health.checks.registry import Rules
from gardener.health.findings import (
    Finding,
    Reference,
    may_have_events,
    missing,
    pods_finding,
    progress_api_version,
    with_events,
)
from kube.conditions import Condition
from kube.errors import KindNotServed
from kube.objects import Key
from kube.resources import DEPLOYMENTS
from kube.runtime.client import Client

_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class _Read:
    finding: Finding
    text: str
    at: float


class Warnings:
    """The warnings about Services that are not healthy, read no more often than they would be reported.

    There is no watch of them, and a list is a call. So they are read when another finding about the Service is made,
    and as long as it stays the same once in five minutes: a condition in which only they differ is not written more
    often.

    Args: now: monotonic seconds.
    """

    def __init__(self, client: Client, *, now: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now = now
        self._read: OrderedDict[Key, _Read] = OrderedDict()

    def known(self, finding: Finding) -> str | None:
        """The text about the Service of a finding, if it need not be read."""
        read = self._read.get(_service(finding))
        if read is None or read.finding != finding or self._now() - read.at >= EVENTS_KEPT_FOR.total_seconds():
            return None
        return read.text

    async def about(self, finding: Finding) -> str:
        known = self.known(finding)
        if known is not None:
            return known
        service = _service(finding)
        read = _Read(finding, await warnings_about(self._client, service), self._now())
        self._read[service] = read
        self._read.move_to_end(service)
        if len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)
        return read.text


def _service(finding: Finding) -> Key:
    return Key(finding.reference.namespace, finding.reference.name)


_DEPLOYMENTS = DEPLOYMENTS.api_version, DEPLOYMENTS.kind


class Check(Protocol):
    async def findings(
        self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False
    ) -> list[Finding]:
        """What is not as it should be.

        Raises:
            KubeError: the first finding can't be made.
            NotKnown: none of the objects is applied.
        """

    def first_finding(
        self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False
    ) -> Finding | None:
        """The first of them, if it is known without a request. Raises NotKnown."""

    def remembered(self, reference: Reference) -> Finding | None:
        """What the watches know of one object; nothing is asked or watched for it. Raises NotKnown."""

    async def forget(self, managed_resource: Key) -> None:
        """Watch nothing for it any more."""

    def condition(self, findings: Sequence[Finding], *, only_applied: bool = False) -> Condition:
        """What its condition has to be."""


class HealthCheck:
    condition = staticmethod(health_condition)

    def __init__(self, *, objects: Objects, warnings: Warnings) -> None:
        self._objects = objects
        self._warnings = warnings

    async def findings(
        self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False
    ) -> list[Finding]:
        kinds = await self._objects.watch(managed_resource, {(r.api_version, r.kind) for r in references})
        if only_applied:
            references = self._applied(references)
        found: list[Finding] = []
        for reference in references:
            kind = kinds[reference.api_version, reference.kind]
            known = self._objects.known(kind, reference)
            if known is not None:
                finding = known.finding
            else:
                finding = await self._read(managed_resource, kind, reference, may_read=not found)
            if finding is not None:
                found.append(finding)
        if found and may_have_events(found[0]):
            found[0] = with_events(found[0], await self._warnings.about(found[0]))
        return found

    def first_finding(self, _: Key, references: Sequence[Reference], *, only_applied: bool = False) -> Finding | None:
        for reference in self._applied(references) if only_applied else references:
            finding = self._objects.remembered(reference.api_version, reference).finding
            if finding is None:
                continue
            if may_have_events(finding):
                warnings = self._warnings.known(finding)
                if warnings is None:
                    raise NotKnown
                finding = with_events(finding, warnings)
            return finding
        return None

    def remembered(self, reference: Reference) -> Finding | None:
        return self._objects.remembered(reference.api_version, reference).finding

    async def forget(self, managed_resource: Key) -> None:
        await self._objects.watch(managed_resource, ())

    def _applied(self, references: Sequence[Reference]) -> list[Reference]:
        """Raises NotKnown: there are none."""
        applied = [reference for reference in references if self._objects.has(reference.api_version, reference)]
        if not applied:
            raise NotKnown
        return applied

    async def _read(self, managed_resource: Key, kind: Kind, reference: Reference, *, may_read: bool) -> Finding | None:
        try:
            read = await self._objects.read(managed_resource, kind, reference, may_read=may_read)
        except KindNotServed as error:
            return missing(reference, unknown_kind=str(error))
        except NotKnown:
            return None
        return missing(reference) if read is None else read.finding


class ProgressCheck:
    """What does not exist is skipped here: it is the business of the health check."""

    condition = staticmethod(progress_condition)

    def __init__(self, *, objects: Objects, pods: Pods, rules: Rules) -> None:
        self._objects = objects
        self._pods = pods
        self._rules = rules

    async def findings(
        self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False
    ) -> list[Finding]:
        rolled_out = [(r, version) for r in references if (version := self._version(r)) is not None]
        names = {(version, reference.kind) for reference, version in rolled_out}
        kinds = await self._objects.watch(managed_resource, names)
        if _DEPLOYMENTS in names:
            await self._pods.use(managed_resource)
        else:
            self._pods.forget(managed_resource)
        if only_applied:
            rolled_out = [(r, version) for r, version in rolled_out if self._objects.has(version, r)]
        found: list[Finding] = []
        for reference, version in rolled_out:
            kind, may_read = kinds[version, reference.kind], not found
            known = self._objects.known(kind, reference)
            if known is None:
                known = await self._read(managed_resource, kind, reference, may_read=may_read)
            finding = known.finding
            if known.pods is not None and may_read:
                finding = pods_finding(reference, known.pods, await self._pods.count(known.pods))
            if finding is not None:
                found.append(finding)
        return found

    def first_finding(
        self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False
    ) -> Finding | None:
        for reference in references:
            version = self._version(reference)
            if version is None or (only_applied and not self._objects.has(version, reference)):
                continue
            kept = self._objects.remembered(version, reference)
            finding = kept.finding
            if kept.pods is not None:
                pods = self._pods.watch(managed_resource)
                count = self._pods.known_count(kept.pods)
                if count is None:
                    raise NotKnown(is_coming=not pods.synced.is_set())
                finding = pods_finding(reference, kept.pods, count)
            if finding is not None:
                return finding
        return None

    def remembered(self, reference: Reference) -> Finding | None:
        version = self._version(reference)
        if version is None:
            return None
        kept = self._objects.remembered(version, reference)
        count = self.pods_of(reference)
        if kept.pods is None or count is None:
            return kept.finding
        return pods_finding(reference, kept.pods, count)

    def pods_of(self, reference: Reference) -> int | None:
        """How many pods a Deployment has, if the watches know. Raises NotKnown."""
        version = self._version(reference)
        wanted = self._objects.remembered(version, reference).pods if version is not None else None
        return self._pods.known_count(wanted) if wanted is not None else None

    async def forget(self, managed_resource: Key) -> None:
        await self._objects.watch(managed_resource, ())
        self._pods.forget(managed_resource)

    def _version(self, reference: Reference) -> str | None:
        return progress_api_version(reference, rules=self._rules)

    async def _read(self, managed_resource: Key, kind: Kind, reference: Reference, *, may_read: bool) -> ObjectHealth:
        with suppress(KindNotServed, NotKnown):
            return await self._objects.read(managed_resource, kind, reference, may_read=may_read) or NOTHING
        return NOTHING
