"""The plans of all ManagedResources: made off the event loop where they are large, within a budget of memory, and kept.

What a Secret unfolds to shows only when it is unfolded. So it is measured first, without keeping anything; then the
plans that are being made share the budget.

A ManagedResource is planned in its own pass only: no pass plans those of others. What one wants that has changed since
is `unknown` until then.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from agent.resource_manager.managed_resource.rules.claims import Claims
from agent.resource_manager.managed_resource.rules.unknown import Unknown
from agent.resource_manager.managed_resource.source import Source
from gardener.managed_resource.decode import DecodeResult, Limits, decode_secrets, unfolded_size
from gardener.managed_resource.plan import (
    LIMITS,
    Basis,
    Data,
    Kinds,
    Plan,
    Restriction,
    data_of,
    defined_groups,
    kinds_of,
    plan,
    unrestricted,
)
from gardener.managed_resource.references import secret_names
from gardener.managed_resource.remedies import unserved_error
from gardener.managed_resource.stamps import injected_labels
from kube.errors import KindNotServed, KubeError
from kube.objects import Key, Object, group_of, key
from kube.resources import Resource
from kube.runtime.discovery import Discovery, find_all
from kube.runtime.limiter import ByteBudget
from kube.runtime.threads import Thread
from kube.yaml import MAX_NODES

_PLANS = Thread("plans")
_OFF_THE_LOOP = 16 * 1024
"""Bytes from which on the work is done in a thread so that requests on the same event loop do not wait for it."""
_COPIES = 4
"""How many times its size a text takes while it is decoded and planned: bytes, characters of one document, JSON."""
_BYTES_OF_VALUE = 500
"""Size of each value while a YAML document is read, where it has at least two characters."""
LARGE = 1 << 20
"""Bytes to be decoded from which on others go first. Hardly any ManagedResource has as many."""
_LARGE_PLANS = Thread("large-plans")
"""So that no plan of usual size waits for a large one."""
LARGE_AT_ONCE = 2
"""Passes that make a large plan: one computes, and one waits for it. More would take the workers of all others."""
_LOOK_AGAIN = (0.2, 5.0)
"""Seconds until a pass that found no place tries again, at least and at most."""
_WAITS_SECONDS = 60.0
"""For which it counts as waiting after that: it may have lost its Secret, or be ignored."""
_ELSEWHERE = Thread("plans-elsewhere")
ELSEWHERE_LIMITS = Limits(total_bytes=1 << 20, values=20_000, documents=2_000)
"""What is planned of a ManagedResource of another agent: it takes a tenth of a second at most."""
_KEPT = 48 << 20
"""Bytes of plans that are kept in memory; those that were not used for longest are made anew when they are needed."""


class SecretError(Exception):
    """A Secret that a ManagedResource names can't be read."""

    def __init__(self, name: str, error: KubeError) -> None:
        super().__init__(f"could not read secret '{name}': {error}")
        self.error = error


class LargePlanError(Exception):
    """What is to be planned is large: it is planned later, when others had their turn.

    Args: seconds: after which it should be tried again.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


async def size_of(data: Data) -> int:
    """How many bytes there are to be decoded; what is more than one may have is not counted."""
    contents = [values for _, values in data]
    size = unfolded_size(contents, limit=_OFF_THE_LOOP)
    if size < _OFF_THE_LOOP:
        return size
    return await _PLANS.compute(unfolded_size, contents, limit=LIMITS.total_bytes)


def memory_for(size: int) -> int:
    """The bytes of memory that it takes at most to decode and plan so many bytes."""
    return _COPIES * size + _BYTES_OF_VALUE * min(size // 2, MAX_NODES)


@dataclass(frozen=True, slots=True)
class PlanningBudget:
    """For all that is planned at once: as much as one may need, of the large ones and of all others."""

    large: ByteBudget = field(default_factory=lambda: ByteBudget(memory_for(LIMITS.total_bytes)))
    others: ByteBudget = field(default_factory=lambda: ByteBudget(memory_for(LARGE)))


async def make_plan(
    *,
    basis: Basis,
    data: Data,
    size: int,
    budget: PlanningBudget,
    discovery: Discovery,
    managed_by: str,
    only_workloads: bool,
    restriction: Restriction = unrestricted,
) -> Plan:
    """Raises nothing for bad content: that is in the plan's errors and problems.

    With `only_workloads` labels are put on the pod templates of known workloads only.

    Args: size: of the data, see `size_of`.
    """
    planned = partial(
        plan,
        basis,
        data,
        labels=injected_labels(dict(basis.injected_labels), managed_by=managed_by),
        only_workloads=only_workloads,
        restriction=restriction,
    )
    if size < _OFF_THE_LOOP:
        decoded = decode_secrets(data, limits=LIMITS)
        return planned(decoded, await _find_kinds(discovery, decoded))

    thread, memory = (_LARGE_PLANS, budget.large) if size >= LARGE else (_PLANS, budget.others)

    async def make_in_threads() -> Plan:
        async with memory.hold(memory_for(size)):
            decoded = await thread.compute(decode_secrets, data, limits=LIMITS)
            return await thread.compute(planned, decoded, await _find_kinds(discovery, decoded))

    # A thread can't be cancelled: until it ends, the memory is in use.
    return await asyncio.shield(asyncio.create_task(make_in_threads()))


async def _find_kinds(discovery: Discovery, decoded: DecodeResult) -> Kinds:
    return await find_all(discovery, kinds_of(decoded), explain=unserved_error, awaited=defined_groups(decoded))


@dataclass(eq=False, kw_only=True, slots=True)
class Plans:
    source: Source
    discovery: Discovery
    managed_by: str
    only_workloads: bool
    restriction: Callable[[str], Restriction]
    """From the namespace of a ManagedResource to what it may not write."""
    _plans: dict[Key, Plan | None] = field(default_factory=dict, init=False)
    """None: it was not used for long, and is not kept."""
    _waited: dict[Key, float] = field(default_factory=dict, init=False)
    """Large ones that others were let go before, see LargePlanError; with the last attempt, monotonic."""
    unknown: Unknown = field(default_factory=Unknown, init=False)
    _begun: dict[Key, float] = field(default_factory=dict, init=False)
    """When the last passes began to read, monotonic."""
    _large: set[Key] = field(default_factory=set, init=False)
    """Those of which a large plan is being made."""
    _budget: PlanningBudget = field(default_factory=PlanningBudget, init=False)
    _kept: OrderedDict[Key, int] = field(default_factory=OrderedDict, init=False)
    """The sizes of the plans that are kept; what was not used for longest comes first."""
    _kept_bytes: int = field(default=0, init=False)
    claims: Claims = field(default_factory=Claims, init=False)

    def has_plan(self, name: Key) -> bool:
        """Whether this process has planned it, so that its claims are known."""
        return name in self._plans

    def last(self, name: Key) -> Plan | None:
        """The plan as it was made last, perhaps outdated."""
        return self._plans.get(name)

    def with_objects_of(self, group: str) -> list[Key]:
        """The ManagedResources that have an object of a group, be it served or not."""
        return [
            name
            for name, plan in self._plans.items()
            if plan is None or any(group_of(w.reference.get("apiVersion") or "") == group for w in plan.wanted())
        ]

    def outdate(self, name: Key) -> None:
        """Something that a plan is made of may have changed."""
        self.unknown.changed(name, now=time.monotonic())

    def begin(self, name: Key) -> None:
        """A pass is about to read what there is."""
        self._begun[name] = time.monotonic()

    def known(self, name: Key) -> None:
        """The pass has planned it, or found that nothing of it may be applied."""
        self.unknown.known(name, as_of=self._begun.get(name, time.monotonic()))

    def forget(self, name: Key) -> None:
        """A ManagedResource is gone; what it has claimed must have been given up before."""
        self._plans.pop(name, None)
        self._waited.pop(name, None)
        self._kept_bytes -= self._kept.pop(name, 0)
        self.unknown.forget(name)
        self._begun.pop(name, None)
        self.claims.forget(name)

    async def of(self, managed_resource: Object) -> Plan:
        """The plan as of now. Raises LargePlanError, and SecretError: a Secret is missing or can't be read."""
        name = key(managed_resource)
        basis = await self.basis(managed_resource)
        plan = self._plans.get(name)
        if plan is None or plan.basis != basis or not plan.is_complete or not await self._are_served(plan.resources):
            self._demand_place(name)
            data = await self._data(managed_resource, basis)
            size = await size_of(data)
            make = self._make_large if size >= LARGE else self._make
            plan = await make(managed_resource, basis, data, size)
            self._waited.pop(name, None)
        self._keep(name, plan)
        return plan

    def _keep(self, name: Key, plan: Plan) -> None:
        self._plans[name] = plan
        self._kept_bytes += plan.size - self._kept.pop(name, 0)
        self._kept[name] = plan.size
        while self._kept_bytes > _KEPT:
            dropped, size = self._kept.popitem(last=False)
            self._kept_bytes -= size
            self._plans[dropped] = None

    async def wanted(self, managed_resource: Object, basis: Basis) -> tuple[frozenset[str], str]:
        """Object keys that a ManagedResource of another agent wants, of which no plan is kept.

        With an error that names what is left out: what can't be decoded, or takes too much. Raises SecretError.
        """
        data = await self._data(managed_resource, basis, most=ELSEWHERE_LIMITS.total_bytes)
        decoded = await _ELSEWHERE.compute(decode_secrets, data, limits=ELSEWHERE_LIMITS)
        restriction = self.restriction(key(managed_resource).namespace)
        found = await _find_kinds(self.discovery, decoded)
        made = await _ELSEWHERE.compute(plan, basis, data, decoded, found, labels={}, restriction=restriction)
        return frozenset(wanted.name for wanted in made.wanted()), next(iter(made.decode_errors), "")

    async def _are_served(self, resources: Iterable[Resource]) -> bool:
        """Whether kinds are still what they were; asks only for what may have changed."""
        for resource in resources:
            try:
                if await self.discovery.find(resource.api_version, resource.kind) != resource:
                    return False
            except KindNotServed:
                return False
            except KubeError:
                continue  # the next call shows that
        return True

    async def basis(self, managed_resource: Object) -> Basis:
        """What its plan is made of now. Raises SecretError."""
        versions = []
        for name in secret_names(managed_resource):
            try:
                found = await self.source.secret_version(Key(key(managed_resource).namespace, name))
            except KubeError as error:
                raise SecretError(name, error) from error
            versions.append((name, found.uid, found.version))
        labels = (managed_resource.get("spec") or {}).get("injectLabels") or {}
        return Basis(tuple(sorted(labels.items())), tuple(versions))

    async def _data(self, managed_resource: Object, basis: Basis, *, most: int = LIMITS.total_bytes) -> Data:
        """Of its Secrets, as far as they hold no more than they may."""
        namespace = key(managed_resource).namespace
        read: dict[str, tuple[Key, Mapping[str, bytes]]] = {}
        data = []
        size = 0
        for name, _, _ in basis.secrets:
            if name not in read:
                try:
                    read[name] = data_of(await self.source.read_secret(Key(namespace, name)))
                except KubeError as error:
                    raise SecretError(name, error) from error
                await asyncio.sleep(0)  # what is in memory is read without waiting for anything
            data.append(read[name])
            size += sum(map(len, read[name][1].values()))
            if size > most:
                break
        return data

    async def _make_large(self, managed_resource: Object, basis: Basis, data: Data, size: int) -> Plan:
        """Raises LargePlanError."""
        name = key(managed_resource)
        if name not in self._waited:
            self._waited[name] = time.monotonic()
            raise LargePlanError(0.0)
        self._demand_place(name)
        self._large.add(name)
        try:
            return await self._make(managed_resource, basis, data, size)
        finally:
            self._large.discard(name)

    def _demand_place(self, name: Key) -> None:
        """Raises LargePlanError: it is to be large, and enough large ones are being made."""
        if name not in self._waited:
            return
        self._waited[name] = now = time.monotonic()
        waiting = [each for each, tried in self._waited.items() if tried >= now - _WAITS_SECONDS]
        if not self._has_place(name.namespace, waiting):
            # All that wait look again about as often as one would, unless they are very many.
            least, most = _LOOK_AGAIN
            raise LargePlanError(min(least * len(waiting), most))

    def _has_place(self, namespace: str, waiting: Iterable[Key]) -> bool:
        """A second one of a namespace gets a place only if no other namespace waits."""
        if any(each.namespace == namespace for each in self._large):
            return len(self._large) < LARGE_AT_ONCE and all(each.namespace == namespace for each in waiting)
        return len(self._large) < LARGE_AT_ONCE

    async def _make(self, managed_resource: Object, basis: Basis, data: Data, size: int) -> Plan:
        namespace = key(managed_resource).namespace
        plan = await make_plan(
            basis=basis,
            data=data,
            size=size,
            budget=self._budget,
            discovery=self.discovery,
            managed_by=self.managed_by,
            only_workloads=self.only_workloads,
            restriction=self.restriction(namespace),
        )
        if plan.is_complete:
            for name, _, _ in basis.secrets:
                self.source.release_secret(Key(namespace, name))
        return plan
