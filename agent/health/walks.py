"""One look at all objects of a ManagedResource, for their health or their progress.

Both walk over the objects in the order in which the status lists them. The first finding decides the condition; from
there on only what is in memory is looked at, since more findings are for the log alone and not worth a request.
"""

from collections.abc import Sequence
from typing import Protocol

from agent.health.checks import deployment
from agent.health.findings import (
    Finding,
    Reference,
    may_have_events,
    missing,
    pods_finding,
    progress_api_version,
    with_events,
)
from agent.health.objects import Kinds, NotKnown, Objects
from agent.health.pods import Pods
from agent.health.verdicts import Verdict, health_verdict, progress_verdict
from agent.health.warnings import Warnings
from kube.errors import KindNotServed, KubeError
from kube.objects import Key


class Walk(Protocol):
    async def findings(self, managed_resource: Key, references: Sequence[Reference]) -> list[Finding]:
        """What is not as it should be. Raises KubeError if the first finding can't be told."""

    def first_finding(self, managed_resource: Key, references: Sequence[Reference]) -> Finding | None:
        """The first of them, if it can be told without asking anybody. Raises NotKnown."""

    def remembered(self, reference: Reference) -> Finding | None:
        """What the watches tell of one object; nothing is asked or watched for it. Raises NotKnown."""

    async def forget(self, managed_resource: Key) -> None:
        """Watch nothing for it any more."""

    def verdict(self, findings: Sequence[Finding]) -> Verdict:
        """What its condition has to tell."""


class HealthWalk:
    def __init__(self, *, objects: Objects, warnings: Warnings) -> None:
        self._objects = objects
        self._warnings = warnings

    async def findings(self, managed_resource: Key, references: Sequence[Reference]) -> list[Finding]:
        kinds = await self._objects.watch(managed_resource, {(r.api_version, r.kind) for r in references})
        found: list[Finding] = []
        for reference in references:
            finding = await self._finding(managed_resource, reference, kinds, may_read=not found)
            if finding is not None:
                found.append(finding)
        if found and may_have_events(found[0]):
            found[0] = with_events(found[0], await self._warnings.about(found[0]))
        return found

    def first_finding(self, _: Key, references: Sequence[Reference]) -> Finding | None:
        for reference in references:
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

    def verdict(self, findings: Sequence[Finding]) -> Verdict:
        return health_verdict(findings)

    async def _finding(
        self, managed_resource: Key, reference: Reference, kinds: Kinds, *, may_read: bool
    ) -> Finding | None:
        kind = kinds[reference.api_version, reference.kind]
        if isinstance(kind, KindNotServed):
            return missing(reference, unknown_kind=str(kind))
        if isinstance(kind, KubeError):
            if may_read:
                raise kind
            return None
        judged = self._objects.known(kind, reference)
        if judged is None:
            if not may_read:
                return None
            try:
                judged = await self._objects.read(managed_resource, kind, reference)
            except KindNotServed as error:
                return missing(reference, unknown_kind=str(error))
        return missing(reference) if judged is None else judged.finding


class ProgressWalk:
    """What does not exist is skipped here: it is the business of the health check."""

    def __init__(self, *, objects: Objects, pods: Pods) -> None:
        self._objects = objects
        self._pods = pods

    async def findings(self, managed_resource: Key, references: Sequence[Reference]) -> list[Finding]:
        rolled_out = [(r, version) for r in references if (version := progress_api_version(r)) is not None]
        names = {(version, reference.kind) for reference, version in rolled_out}
        kinds = await self._objects.watch(managed_resource, names)
        if (deployment.RULE.api_version, deployment.RULE.kind) in names:
            await self._pods.use(managed_resource)
        else:
            await self._pods.forget(managed_resource)
        found: list[Finding] = []
        for reference, version in rolled_out:
            finding = await self._finding(managed_resource, reference, kinds, version, may_read=not found)
            if finding is not None:
                found.append(finding)
        return found

    def first_finding(self, managed_resource: Key, references: Sequence[Reference]) -> Finding | None:
        for reference in references:
            version = progress_api_version(reference)
            if version is None:
                continue
            judged = self._objects.remembered(version, reference)
            finding = judged.finding
            if judged.pods is not None:
                pods = self._pods.watch(managed_resource)
                count = self._pods.known_count(judged.pods)
                if count is None:
                    raise NotKnown(is_coming=not pods.synced.is_set())
                finding = pods_finding(reference, judged.pods, count)
            if finding is not None:
                return finding
        return None

    def remembered(self, reference: Reference) -> Finding | None:
        version = progress_api_version(reference)
        if version is None:
            return None
        judged = self._objects.remembered(version, reference)
        count = self.pods_of(reference)
        if judged.pods is None or count is None:
            return judged.finding
        return pods_finding(reference, judged.pods, count)

    def pods_of(self, reference: Reference) -> int | None:
        """How many pods a Deployment has, if the watches tell. Raises NotKnown."""
        version = progress_api_version(reference)
        wanted = self._objects.remembered(version, reference).pods if version is not None else None
        return self._pods.known_count(wanted) if wanted is not None else None

    async def forget(self, managed_resource: Key) -> None:
        await self._objects.watch(managed_resource, ())
        await self._pods.forget(managed_resource)

    def verdict(self, findings: Sequence[Finding]) -> Verdict:
        return progress_verdict(findings)

    async def _finding(
        self, managed_resource: Key, reference: Reference, kinds: Kinds, version: str, *, may_read: bool
    ) -> Finding | None:
        kind = kinds[version, reference.kind]
        if isinstance(kind, KindNotServed):
            return None
        if isinstance(kind, KubeError):
            if may_read:
                raise kind
            return None
        judged = self._objects.known(kind, reference)
        if judged is None and may_read:
            try:
                judged = await self._objects.read(managed_resource, kind, reference)
            except KindNotServed:
                return None
        if judged is None:
            return None
        if judged.pods is None or not may_read:
            return judged.finding
        return pods_finding(reference, judged.pods, await self._pods.count(judged.pods))
