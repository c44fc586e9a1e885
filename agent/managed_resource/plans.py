"""The plans of all ManagedResources, made when they are needed and kept as long as they hold.

Beside a plan, what this process has done for its ManagedResource is remembered. All of it can be lost at any time: then
the cluster is looked at more closely, once.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from agent.api import secret_names
from agent.managed_resource.claims import Claims
from agent.managed_resource.plan import Basis, Plan, data_of, make_plan
from agent.managed_resource.restrictions import Refusal
from agent.managed_resource.source import Source
from kube.discovery import Discovery
from kube.errors import KindNotServed, KubeError
from kube.objects import Key, Object, group_of, is_deleting, key
from kube.resources import Resource

_DEBOUNCE = 0.1
_FREE_REPAIRS = 5
_SHORT_SUCCESSION = 60.0
_MOST_DOUBLINGS = 15


class SecretError(Exception):
    """A Secret that a ManagedResource names can't be read."""

    def __init__(self, name: str, error: KubeError) -> None:
        super().__init__(f"could not read secret '{name}': {error}")
        self.error = error


@dataclass(slots=True)
class Memory:
    """What this process knows of a ManagedResource beyond what the cluster says."""

    plan: Plan | None = None
    applied: dict[str, bytes] = field(default_factory=dict)
    """Fingerprints of what was applied, by object key."""
    unwanted_since: dict[str, float] = field(default_factory=dict)
    """Object keys that have to go, and when that was first seen."""
    deleted: set[str] = field(default_factory=set)
    """Object keys for which a DELETE was accepted."""
    stuck_since: float | None = None
    """Since when every removal that is left fails."""
    complaint: str = ""
    """The failure that was last told by an event."""
    failing_since: float | None = None
    applied_at: float | None = None
    """Seconds since 1970 when everything was last found or made as it should be."""
    forced_at: float = float("-inf")
    """When everything was written last because the configuration asks for it (`alwaysUpdate`)."""
    repairs: int = 0
    """How often drift was put right in short succession."""
    repaired_at: float = 0.0

    def repaired(self, now: float) -> None:
        self.repairs = self.repairs + 1 if self._is_recent(now) else 1
        self.repaired_at = now

    def repairs_lately(self, now: float, *, longest: float) -> int:
        """How many repairs there were in the succession that goes on, if none waits for more than `longest` seconds."""
        awaited = 2 * min(self._growing(), longest)
        return self.repairs if now - self.repaired_at < max(_SHORT_SUCCESSION, awaited) else 0

    def patience(self, now: float) -> float:
        """Seconds to wait before drift is put right: more and more if somebody else insists."""
        return self._growing() if self._is_recent(now) else _DEBOUNCE

    def _is_recent(self, now: float) -> bool:
        return now - self.repaired_at < max(_SHORT_SUCCESSION, 2 * self._growing())

    def _growing(self) -> float:
        return float(_DEBOUNCE * 2 ** min(max(self.repairs - _FREE_REPAIRS, 0), _MOST_DOUBLINGS))


class Plans:
    """Args: refusal: from the namespace of a ManagedResource to what it may not write."""

    def __init__(
        self,
        source: Source,
        discovery: Discovery,
        *,
        managed_by: str,
        only_workloads: bool,
        refusal: Callable[[str], Refusal],
    ) -> None:
        self._source = source
        self._discovery = discovery
        self._managed_by = managed_by
        self._only_workloads = only_workloads
        self._refusal = refusal
        self._memories: dict[Key, Memory] = {}
        self._outdated: set[Key] = set()
        self._one_at_a_time = asyncio.Lock()
        self.claims = Claims()

    def memory(self, name: Key) -> Memory:
        return self._memories.setdefault(name, Memory())

    def knows(self, name: Key) -> bool:
        """Whether this process has applied something for a ManagedResource, and has not removed it yet."""
        memory = self._memories.get(name)
        return memory is not None and bool(memory.applied or memory.unwanted_since)

    def applied_at(self, name: Key) -> float | None:
        memory = self._memories.get(name)
        return None if memory is None else memory.applied_at

    def repairs(self, name: Key, now: float, *, longest: float) -> int:
        memory = self._memories.get(name)
        return 0 if memory is None else memory.repairs_lately(now, longest=longest)

    def has_plan(self, name: Key) -> bool:
        return self.last(name) is not None

    def last(self, name: Key) -> Plan | None:
        """The plan as it was made last, perhaps outdated."""
        memory = self._memories.get(name)
        return None if memory is None else memory.plan

    def with_objects_of(self, group: str) -> list[Key]:
        """The ManagedResources that have an object of a group, be it served or not."""
        return [
            name
            for name, memory in self._memories.items()
            if memory.plan is not None
            and any(group_of(w.reference.get("apiVersion") or "") == group for w in memory.plan.wanted())
        ]

    def outdate(self, name: Key) -> None:
        """Something that a plan is made of may have changed."""
        self._outdated.add(name)

    def forget(self, name: Key) -> None:
        """A ManagedResource is gone; what it has claimed must have been given up before."""
        self._memories.pop(name, None)
        self._outdated.discard(name)

    async def of(self, managed_resource: Object) -> Plan:
        """The plan as of now.

        Raises:
            SecretError: a Secret is missing or can't be read.
        """
        name = key(managed_resource)
        memory = self.memory(name)
        basis = self._basis(managed_resource)
        plan = memory.plan
        if plan is None or plan.basis != basis or not plan.is_complete or not await self._are_served(plan.resources):
            plan = memory.plan = await self._make(managed_resource, basis)
        self._outdated.discard(name)
        return plan

    async def bring_up_to_date(self) -> set[Key]:
        """Make all plans that may be outdated, so that all claims on objects are known.

        To be called before anything is removed: it may have moved to another ManagedResource. Returns the
        ManagedResources that want an object that another one gave up just now.
        """
        async with self._one_at_a_time:
            return await self._bring_up_to_date()

    async def _bring_up_to_date(self) -> set[Key]:
        waiting: set[Key] = set()
        for name in list(self._outdated):
            managed_resource = self._source.managed_resources.get(name)
            if managed_resource is None or is_deleting(managed_resource):
                self._outdated.discard(name)
                continue
            try:
                plan = await self.of(managed_resource)
            except SecretError:
                # Its own pass reports that; until then what it has applied stays its own.
                self._outdated.discard(name)
            else:
                for given_up in self.claims.replace(name, (wanted.name for wanted in plan.wanted())):
                    waiting |= self.claims.others(name, given_up)
        return waiting

    async def _are_served(self, resources: Iterable[Resource]) -> bool:
        """Whether kinds are still what they were; asks only for what may have changed."""
        for resource in resources:
            try:
                if await self._discovery.find(resource.api_version, resource.kind) != resource:
                    return False
            except KindNotServed:
                return False
            except KubeError:
                continue  # whoever needs the API server will say so
        return True

    def _basis(self, managed_resource: Object) -> Basis:
        versions = []
        for name in secret_names(managed_resource):
            try:
                found = self._source.secret_version(Key(key(managed_resource).namespace, name))
            except KubeError as error:
                raise SecretError(name, error) from error
            versions.append((name, found.uid, found.version))
        labels = (managed_resource.get("spec") or {}).get("injectLabels") or {}
        return Basis(tuple(sorted(labels.items())), tuple(versions))

    async def _make(self, managed_resource: Object, basis: Basis) -> Plan:
        secrets = []
        namespace = key(managed_resource).namespace
        for name, _, _ in basis.secrets:
            try:
                secrets.append(await self._source.read_secret(Key(namespace, name)))
            except KubeError as error:
                raise SecretError(name, error) from error
        plan = await make_plan(
            basis=basis,
            data=data_of(secrets),
            discovery=self._discovery,
            managed_by=self._managed_by,
            only_workloads=self._only_workloads,
            refusal=self._refusal(namespace),
        )
        if plan.is_complete:
            for name, _, _ in basis.secrets:
                self._source.release_secret(Key(namespace, name))
        return plan
