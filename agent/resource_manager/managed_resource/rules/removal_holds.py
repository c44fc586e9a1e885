"""Which objects stay for now because others are not gone yet, in one pass that removes objects.

The stages of `gardener.managed_resource.order` go one after the other. Workloads, and all that they need, stay as long
as custom resources and finalizers of others do: one of the workloads may be the controller that acts on these. Without
a limit if the custom resource's kind is defined by the same ManagedResource, or by one that `depends-on` joins with it:
its controller is among them, too, and nothing else would ever take its finalizer off. Otherwise the controller is
probably elsewhere, or does not exist, and after the configured time the workloads go. So they do if custom resources
can't be deleted at all: that may be for lack of what a workload serves, and it may never work.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta

from gardener.managed_resource.messages import definition_kept_text, in_use_text, kept_text
from gardener.managed_resource.order import Stage, defined_groups, is_api_service, place_of_use
from gardener.managed_resource.references import resource_string_of_reference
from kube.clock import format_duration
from kube.objects import Object, group_of


@dataclass(frozen=True, slots=True)
class Awaited:
    """An object that is to go and is not gone yet."""

    reference: Object
    failed: bool
    passed: timedelta
    """Since its removal began."""
    held_by: str = ""
    """What it waits for, if it is being deleted."""
    owner: str = ""
    """The ManagedResource that has it, if that is another one."""

    def __str__(self) -> str:
        of = f" of ManagedResource {self.owner}" if self.owner else ""
        return f'"{resource_string_of_reference(self.reference)}"{of}'


@dataclass(frozen=True, slots=True)
class Hold:
    """Why an object is not deleted yet."""

    text: str
    left: timedelta | None
    """Until it is deleted nevertheless; None: it never is."""
    failed: bool
    """All attempts to remove what it waits for end in errors."""
    details: str = ""
    """What custom resources or finalizers wait for, for which it may be needed; reported of workloads only."""


@dataclass(eq=False, kw_only=True, slots=True)
class RemovalHolds:
    timeout: timedelta
    """For which objects wait for others; zero: nothing does."""
    has_workloads: bool
    """Some are to go, so that a controller may be among them."""
    defined: AbstractSet[str]
    """The API groups whose kinds come from here."""
    _awaited: dict[Stage, list[Awaited]] = field(default_factory=dict, init=False)
    _known: dict[tuple[Stage, str | None, bool], Hold | None] = field(default_factory=dict, init=False)

    def add(self, stage: Stage, awaited: Iterable[Awaited]) -> None:
        self._awaited.setdefault(stage, []).extend(awaited)
        self._known.clear()

    def hold_of(self, reference: Object, stage: Stage) -> Hold | None:
        """What is waited for before an object of a stage is deleted. All earlier stages have been added."""
        place = place_of_use(reference) if stage is Stage.USED else None
        name = stage, place, is_api_service(reference)
        if name not in self._known:
            self._known[name] = self._find(*name)
        return self._known[name]

    def _find(self, stage: Stage, place: str | None, serves_kinds: bool) -> Hold | None:
        if stage <= Stage.FINALIZED or not self.timeout:
            return None
        first = self._waited_for(self._before(stage))
        if serves_kinds:
            # What fails may be for lack of a server behind it.
            first = [each for each in first if not each.failed]
        if first:
            return self._for_controllers(first)
        if stage is Stage.USED:
            return self._for_pods(place or "")
        return self._for_all() if stage is Stage.DEFINITIONS else None

    def _before(self, stage: Stage) -> Iterator[Stage]:
        yield Stage.CUSTOM_RESOURCES
        if self.has_workloads:
            yield Stage.FINALIZED
            if stage > Stage.DEFINITIONS_IN_USE:
                yield Stage.DEFINITIONS_IN_USE
        if stage is Stage.WORKLOADS:
            yield Stage.FINALIZED_WORKLOADS

    def _waited_for(self, stages: Iterable[Stage]) -> list[Awaited]:
        return [
            each
            for stage in stages
            for each in self._awaited.get(stage, ())
            if (left := self._left(each)) is None or left > timedelta(0)
        ]

    def _left(self, awaited: Awaited) -> timedelta | None:
        if not awaited.failed and self._is_defined(awaited.reference):
            return None
        return self.timeout - awaited.passed

    def _is_defined(self, reference: Object) -> bool:
        return bool(self.defined & {group_of(reference.get("apiVersion") or ""), *defined_groups([reference])})

    def _for_controllers(self, awaited: Sequence[Awaited]) -> Hold:
        lefts = [self._left(each) for each in awaited]
        limited = [left for left in lefts if left is not None]
        left = max(limited) if len(limited) == len(lefts) else None
        first = min(awaited, key=lambda each: (not each.held_by, str(each)))
        text = kept_text(str(first), more=len(awaited) - 1, timeout="" if left is None else self._timeout())
        details = f"{first} {first.held_by}" if first.held_by else ""
        is_failed = all(each.failed for each in awaited)
        return Hold(text, left, is_failed, details=details)

    def _for_pods(self, place: str) -> Hold | None:
        """By the namespace in which something is used; empty: in any."""
        workloads = [
            each
            for each in self._waited_for((Stage.FINALIZED_WORKLOADS, Stage.WORKLOADS))
            if place in {each.reference.get("namespace") or "", ""}
        ]
        if not workloads:
            return None
        names = [resource_string_of_reference(each.reference) for each in workloads]
        return self._limited(in_use_text(names, timeout=self._timeout()), workloads)

    def _for_all(self) -> Hold | None:
        awaited = self._waited_for(stage for stage in Stage if stage is not Stage.DEFINITIONS)
        if not awaited:
            return None
        text = definition_kept_text(min(map(str, awaited)), more=len(awaited) - 1, timeout=self._timeout())
        return self._limited(text, awaited)

    def _limited(self, text: str, awaited: Sequence[Awaited]) -> Hold:
        left = max(self.timeout - each.passed for each in awaited)
        return Hold(text, left, all(each.failed for each in awaited))

    def _timeout(self) -> str:
        return format_duration(self.timeout.total_seconds())
