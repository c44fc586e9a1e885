"""Objects that stay for now because others are not gone yet, in one pass that removes objects.

The stages of `gardener.managed_resource.order` run one after the other. Workloads, and all objects that they need, stay
as long as custom resources and finalizers of others do: one of the workloads may be the controller that handles these.
There is no limit if the custom resource's kind is defined by the same ManagedResource, or by one that `depends-on`
joins with it: then its controller is also among them, and no other would ever remove the finalizer. Otherwise the
controller is probably elsewhere, or does not exist, and the workloads are removed after the configured time. So they
are if custom resources cannot be deleted at all: that may need a server among the workloads, and may never work.
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
    """A removed object that is not gone yet."""

    reference: Object
    failed: bool
    passed: timedelta
    """Time since its removal began."""
    held_by: str = ""
    """Remaining finalizers or conditions, if it is being deleted."""
    owner: str = ""
    """The ManagedResource that has it, if it is another one."""

    def __str__(self) -> str:
        of = f" of ManagedResource {self.owner}" if self.owner else ""
        return f'"{resource_string_of_reference(self.reference)}"{of}'


@dataclass(frozen=True, slots=True)
class Hold:
    """Reason why an object is not deleted yet."""

    text: str
    left: timedelta | None
    """Time until it is deleted nevertheless; None if there is no limit."""
    failed: bool
    """Whether all attempts to remove the objects that it waits for fail."""
    details: str = ""
    """State of custom resources or finalizers that may need it; reported for workloads only."""


@dataclass(eq=False, kw_only=True, slots=True)
class RemovalHolds:
    timeout: timedelta
    """Time that objects wait for others; zero if nothing waits."""
    has_workloads: bool
    """Whether workloads are being removed, so that a controller may be among them."""
    defined: AbstractSet[str]
    """API groups with kinds that are defined here."""
    _awaited: dict[Stage, list[Awaited]] = field(default_factory=dict, init=False)
    _known: dict[tuple[Stage, str | None, bool], Hold | None] = field(default_factory=dict, init=False)

    def add(self, stage: Stage, awaited: Iterable[Awaited]) -> None:
        self._awaited.setdefault(stage, []).extend(awaited)
        self._known.clear()

    def hold_of(self, reference: Object, stage: Stage) -> Hold | None:
        """Return the reason to wait before an object of a stage is deleted. All earlier stages have been added."""
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
            # A failure may be due to the lack of a server behind it.
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
        """Return a hold by workloads in the namespace where an object is used; empty for any namespace."""
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
