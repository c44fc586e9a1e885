"""Plans of all ManagedResources: made off the event loop if they are large, within a budget of memory, and cached.

Only unfolding shows the size of a Secret's content. So it is measured first, without keeping anything; then the plans
in progress share the budget.

Only its own pass plans a ManagedResource. Until then, the claims of a changed one are `unknown`.
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
from kube.errors import KubeError
from kube.objects import Key, Object, group_of, key
from kube.resources import Resource
from kube.runtime.discovery import Discovery, find_all
from kube.runtime.limiter import ByteBudget
from kube.runtime.threads import Thread
from kube.yaml import MAX_NODES

_PLANS = Thread("plans")
_OFF_THE_LOOP = 16 * 1024
"""Bytes from which on a thread does the work, so that requests on the same event loop do not wait."""
_COPIES = 4
"""Memory for decoding and planning as a multiple of the text: bytes, characters of one document, JSON."""
_BYTES_OF_VALUE = 500
"""Bytes per value while a YAML document is read; each value has at least two characters."""
LARGE = 1 << 20
"""Bytes to be decoded from which on others go first. Hardly any ManagedResource has as many."""
_LARGE_PLANS = Thread("large-plans")
"""Separate thread, so that no plan of usual size waits for a large one."""
LARGE_AT_ONCE = 2
"""Passes that make a large plan: one computes, and one waits for it. More would take the workers of all others."""
_LOOK_AGAIN = (0.2, 5.0)
"""Minimum and maximum seconds until a pass without a place tries again."""
_WAITS_SECONDS = 60.0
"""Seconds after an attempt for which it counts as waiting: it may have lost its Secret, or be ignored."""
_ELSEWHERE = Thread("plans-elsewhere")
ELSEWHERE_LIMITS = Limits(total_bytes=1 << 20, values=20_000, documents=2_000)
"""Limits of a plan for a ManagedResource of another agent: it takes a tenth of a second at most."""
_KEPT = 48 << 20
"""Bytes of plans kept in memory; the least recently used ones are recreated when needed."""


class SecretError(Exception):
    """A Secret of a ManagedResource cannot be read."""

    def __init__(self, name: str, error: KubeError) -> None:
        super().__init__(f"could not read secret '{name}': {error}")
        self.error = error


class LargePlanError(Exception):
    """The plan is large: it is postponed until others had their turn.

    Args: seconds: delay before the next attempt.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


async def size_of(data: Data) -> int:
    """Return the number of bytes to be decoded, up to the limit for one ManagedResource."""
    contents = [values for _, values in data]
    size = unfolded_size(contents, limit=_OFF_THE_LOOP)
    if size < _OFF_THE_LOOP:
        return size
    return await _PLANS.compute(unfolded_size, contents, limit=LIMITS.total_bytes)


def memory_for(size: int) -> int:
    """Maximum bytes of memory for decoding and planning so many bytes."""
    return _COPIES * size + _BYTES_OF_VALUE * min(size // 2, MAX_NODES)


@dataclass(frozen=True, slots=True)
class PlanningBudget:
    """Memory of all plans in progress: enough for one of the maximum size, separately for large ones and all others."""

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
    """Make a plan. Invalid content raises no error: it leads to errors and problems in the plan.

    `only_workloads` limits labels to the pod templates of known workloads.

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

    # A thread cannot be cancelled: the memory stays in use until it ends.
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
    """Restriction of the objects that a ManagedResource may write, by its namespace."""
    _plans: dict[Key, Plan | None] = field(default_factory=dict, init=False)
    """Latest plans; None if it was unused for long, and not kept."""
    _waited: dict[Key, float] = field(default_factory=dict, init=False)
    """Monotonic time of the last attempt of large ones that wait for others, see LargePlanError."""
    unknown: Unknown = field(default_factory=Unknown, init=False)
    _begun: dict[Key, float] = field(default_factory=dict, init=False)
    """Monotonic time at which the last pass began to read."""
    _large: set[Key] = field(default_factory=set, init=False)
    """ManagedResources whose large plan is being made."""
    _budget: PlanningBudget = field(default_factory=PlanningBudget, init=False)
    _kept: OrderedDict[Key, int] = field(default_factory=OrderedDict, init=False)
    """Sizes of the plans in memory; the least recently used one comes first."""
    _kept_bytes: int = field(default=0, init=False)
    claims: Claims = field(default_factory=Claims, init=False)

    def has_plan(self, name: Key) -> bool:
        """Whether this process has planned it, so that its claims are known."""
        return name in self._plans

    def last(self, name: Key) -> Plan | None:
        """Return the latest plan, perhaps outdated."""
        return self._plans.get(name)

    def with_objects_of(self, group: str) -> list[Key]:
        """ManagedResources that have an object of a group, served or not."""
        return [
            name
            for name, plan in self._plans.items()
            if plan is None or any(group_of(w.reference.get("apiVersion") or "") == group for w in plan.wanted())
        ]

    def outdate(self, name: Key) -> None:
        """Note that an input of a plan may have changed."""
        self.unknown.changed(name, now=time.monotonic())

    def begin(self, name: Key) -> None:
        """Note that a pass is about to read the inputs."""
        self._begun[name] = time.monotonic()

    def known(self, name: Key) -> None:
        """Note that the pass has planned it, or must not apply any of its objects."""
        self.unknown.known(name, as_of=self._begun.get(name, time.monotonic()))

    def forget(self, name: Key) -> None:
        """Forget a deleted ManagedResource; its claims must have been given up before."""
        self._plans.pop(name, None)
        self._waited.pop(name, None)
        self._kept_bytes -= self._kept.pop(name, 0)
        self.unknown.forget(name)
        self._begun.pop(name, None)
        self.claims.forget(name)

    async def of(self, managed_resource: Object) -> Plan:
        """Return the current plan.

        Raises:
            LargePlanError: the plan is postponed.
            SecretError: a Secret is missing or cannot be read.
        """
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
        """Return object keys that a ManagedResource of another agent wants, without keeping a plan, and an error.

        The error names the omitted content: invalid, or too large.

        Raises:
            SecretError: a Secret is missing or cannot be read.
        """
        data = await self._data(managed_resource, basis, most=ELSEWHERE_LIMITS.total_bytes)
        decoded = await _ELSEWHERE.compute(decode_secrets, data, limits=ELSEWHERE_LIMITS)
        restriction = self.restriction(key(managed_resource).namespace)
        found = await _find_kinds(self.discovery, decoded)
        made = await _ELSEWHERE.compute(plan, basis, data, decoded, found, labels={}, restriction=restriction)
        return frozenset(wanted.name for wanted in made.wanted()), next(iter(made.decode_errors), "")

    async def _are_served(self, resources: Iterable[Resource]) -> bool:
        """Whether kinds are unchanged; requests only those that may have changed."""
        for resource in resources:
            try:
                if await self.discovery.kind_if_served(resource.api_version, resource.kind) != resource:
                    return False
            except KubeError:
                continue  # the next call reports that
        return True

    async def basis(self, managed_resource: Object) -> Basis:
        """Return the current inputs of its plan.

        Raises:
            SecretError: a Secret is missing or cannot be read.
        """
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
        """Return the data of its Secrets, up to the limit."""
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
                await asyncio.sleep(0)  # reading from memory waits for nothing: yield
            data.append(read[name])
            size += sum(map(len, read[name][1].values()))
            if size > most:
                break
        return data

    async def _make_large(self, managed_resource: Object, basis: Basis, data: Data, size: int) -> Plan:
        """Make a large plan.

        Raises:
            LargePlanError: others go first.
        """
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
        """Check that the plan may be made now, if it is a large one.

        Raises:
            LargePlanError: enough large plans are being made.
        """
        if name not in self._waited:
            return
        self._waited[name] = now = time.monotonic()
        waiting = [each for each, tried in self._waited.items() if tried >= now - _WAITS_SECONDS]
        if not self._has_place(name.namespace, waiting):
            # All waiting ones together try about as often as one would alone, unless they are very many.
            least, most = _LOOK_AGAIN
            raise LargePlanError(min(least * len(waiting), most))

    def _has_place(self, namespace: str, waiting: Iterable[Key]) -> bool:
        """Whether there is a place; a second one of a namespace gets it only if no other namespace waits."""
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
