"""The plans of all ManagedResources: made off the event loop where they are large, within a budget of memory, and kept.

What a Secret unfolds to shows only when it is unfolded. So it is measured first, without keeping anything; then the
plans that are being made share the budget.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from agent.resource_manager.managed_resource.rules.claims import Claims
from agent.resource_manager.managed_resource.source import Source
from gardener.managed_resource.decode import DecodeResult, decode_secrets, unfolded_size
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
from kube.objects import Key, Object, group_of, is_deleting, key
from kube.resources import Resource
from kube.runtime.discovery import Discovery, find_all
from kube.runtime.limiter import ByteBudget
from kube.runtime.threads import Thread

_PLANS = Thread("plans")
_OFF_THE_LOOP = 16 * 1024
"""Bytes from which on the work is done in a thread so that requests on the same event loop do not wait for it."""
_COPIES = 8
"""How many times its size a text takes while it is decoded and planned: bytes, characters of up to 4 bytes, JSON."""
_BYTES_OF_VALUE = 300
"""What each value takes while YAML is read, which has at least two characters."""
LARGE = 1 << 20
"""Bytes to be decoded from which on others go first. Hardly any ManagedResource has as many."""
_KEPT = 256 << 20
"""Bytes of plans that are kept in memory; those that were not used for longest are made anew when they are needed."""


class SecretError(Exception):
    """A Secret that a ManagedResource names can't be read."""

    def __init__(self, name: str, error: KubeError) -> None:
        super().__init__(f"could not read secret '{name}': {error}")
        self.error = error


class LargePlanError(Exception):
    """What is to be planned is large; the next attempt plans it, which should be when others had their turn."""


async def size_of(data: Data) -> int:
    """How many bytes there are to be decoded; what is more than one may have is not counted."""
    contents = [values for _, values in data]
    size = unfolded_size(contents, limit=_OFF_THE_LOOP)
    if size < _OFF_THE_LOOP:
        return size
    return await _PLANS.compute(unfolded_size, contents, limit=LIMITS.total_bytes)


def memory_for(size: int) -> int:
    """The bytes of memory that it takes at most to decode and plan so many bytes."""
    return _COPIES * size + _BYTES_OF_VALUE * min(size // 2, LIMITS.values)


def planning_budget() -> ByteBudget:
    """For all that is planned at once: as much as one may need."""
    return ByteBudget(memory_for(LIMITS.total_bytes))


async def make_plan(
    *,
    basis: Basis,
    data: Data,
    size: int,
    budget: ByteBudget,
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

    async def make_in_threads() -> Plan:
        async with budget.hold(memory_for(size)):
            decoded = await _PLANS.compute(decode_secrets, data, limits=LIMITS)
            return await _PLANS.compute(planned, decoded, await _find_kinds(discovery, decoded))

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
    _waited: set[Key] = field(default_factory=set, init=False)
    """Large ones that others were let go before, see LargePlanError."""
    _outdated: set[Key] = field(default_factory=set, init=False)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _budget: ByteBudget = field(default_factory=planning_budget, init=False)
    _kept: OrderedDict[Key, int] = field(default_factory=OrderedDict, init=False)
    """The sizes of the plans that are kept; what was not used for longest comes first."""
    _kept_bytes: int = field(default=0, init=False)
    _elsewhere: dict[Key, tuple[Basis, frozenset[str]]] = field(default_factory=dict, init=False)
    """What ManagedResources of other agents want, of those that were asked for last."""
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
        self._outdated.add(name)

    def forget(self, name: Key) -> None:
        """A ManagedResource is gone; what it has claimed must have been given up before."""
        self._plans.pop(name, None)
        self._waited.discard(name)
        self._kept_bytes -= self._kept.pop(name, 0)
        self._outdated.discard(name)
        self.claims.forget(name)

    async def of(self, managed_resource: Object, *, in_turn: bool = False) -> Plan:
        """The plan as of now.

        Raises:
            SecretError: a Secret is missing or can't be read.
            LargePlanError: only with `in_turn`.
        """
        name = key(managed_resource)
        basis = self._basis(managed_resource)
        plan = self._plans.get(name)
        if plan is None or plan.basis != basis or not plan.is_complete or not await self._are_served(plan.resources):
            data = await self._data(managed_resource, basis)
            size = await size_of(data)
            if in_turn and size >= LARGE and name not in self._waited:
                self._waited.add(name)
                raise LargePlanError
            plan = await self._make(managed_resource, basis, data, size)
            self._waited.discard(name)
        self._keep(name, plan)
        self._outdated.discard(name)
        return plan

    def _keep(self, name: Key, plan: Plan) -> None:
        self._plans[name] = plan
        self._kept_bytes += plan.size - self._kept.pop(name, 0)
        self._kept[name] = plan.size
        while self._kept_bytes > _KEPT:
            dropped, size = self._kept.popitem(last=False)
            self._kept_bytes -= size
            self._plans[dropped] = None

    async def bring_up_to_date(self) -> set[Key]:
        """Make all plans that may be outdated, so that all claims on objects are known.

        To be called before anything is removed: it may have moved to another ManagedResource. Returns the
        ManagedResources that want an object that another one gave up just now.
        """
        waiting: set[Key] = set()
        async with self._one_at_a_time:
            for name in list(self._outdated):
                managed_resource = self.source.managed_resources.get(name)
                if managed_resource is None or is_deleting(managed_resource):
                    self._outdated.discard(name)
                    continue
                try:
                    plan = await self.of(managed_resource)
                except SecretError:
                    # Its own pass reports that; until then what it has applied stays its own.
                    self._outdated.discard(name)
                else:
                    waiting |= self.claims.replace(name, (wanted.name for wanted in plan.wanted()))
        return waiting

    async def wanted_elsewhere(self, managed_resources: Iterable[Object]) -> dict[str, Key]:
        """Object keys, and who of these ManagedResources of other agents wants them; no plans of theirs are kept."""
        async with self._one_at_a_time:
            known, self._elsewhere = self._elsewhere, {}
            for managed_resource in managed_resources:
                name = key(managed_resource)
                try:
                    basis = self._basis(managed_resource)
                    found = known.get(name)
                    if found is None or found[0] != basis:
                        data = await self._data(managed_resource, basis)
                        plan = await self._make(managed_resource, basis, data, await size_of(data))
                        found = basis, frozenset(wanted.name for wanted in plan.wanted())
                except SecretError:
                    continue  # what it wants is not known; its own agent reports that
                self._elsewhere[name] = found
            return {object_key: name for name, (_, wanted) in self._elsewhere.items() for object_key in wanted}

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

    def _basis(self, managed_resource: Object) -> Basis:
        versions = []
        for name in secret_names(managed_resource):
            try:
                found = self.source.secret_version(Key(key(managed_resource).namespace, name))
            except KubeError as error:
                raise SecretError(name, error) from error
            versions.append((name, found.uid, found.version))
        labels = (managed_resource.get("spec") or {}).get("injectLabels") or {}
        return Basis(tuple(sorted(labels.items())), tuple(versions))

    async def _data(self, managed_resource: Object, basis: Basis) -> Data:
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
            if size > LIMITS.total_bytes:
                break
        return data

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
