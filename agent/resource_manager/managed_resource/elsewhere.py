"""Upcoming claims of ManagedResources of other agents: their pending objects, and those of a changed spec or Secret.

For the latter they are planned here, independent of the passes: one after the other, by namespaces in turn, with a
pause after each in proportion to its duration, and only while an object is being removed. A ManagedResource that is too
expensive to plan is left out, and logged. A removal waits no longer than `Look` permits, however much
these ManagedResources contain.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, islice

import structlog

from agent.resource_manager.managed_resource.plans import Plans, SecretError
from agent.resource_manager.managed_resource.rules.claims import Claims
from agent.resource_manager.managed_resource.rules.unknown import Unknown
from gardener.managed_resource.conditions import has_failed
from gardener.managed_resource.inventory import PENDING
from gardener.managed_resource.plan import Basis
from gardener.managed_resource.references import key_of_reference
from kube.objects import Key, Object, mappings

_PAUSE = 4
"""Pause as a multiple of the duration of the previous plan."""
_LONGEST_PAUSE = 1.0
_MOST_SECONDS = 5.0
"""Maximum seconds for one of them; its Secrets may have to be read."""
_REMOVING_SECONDS = 10.0
"""Seconds after the last check in which planning continues."""
MOST_CLAIMS = 50_000
"""Maximum claims of all of them together, each some hundred bytes; removals do not wait for claims beyond that."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(eq=False, kw_only=True, slots=True)
class Elsewhere:
    """See the module.

    Args:
        find: returns one of them, None if it is gone.
        is_outdated: whether its agent may not have seen its latest change.
    """

    plans: Plans
    find: Callable[[Key], Object | None]
    is_outdated: Callable[[Object], bool]
    unknown: Unknown = field(default_factory=Unknown, init=False)
    _claims: Claims = field(default_factory=Claims, init=False)
    _counts: dict[Key, int] = field(default_factory=dict, init=False)
    """Number of claims of each that is in progress."""
    _count: int = field(default=0, init=False)
    _planned: dict[Key, tuple[Basis, frozenset[str]]] = field(default_factory=dict, init=False)
    _left_out: set[Key] = field(default_factory=set, init=False)
    """ManagedResources whose excessive size was logged."""
    _until: float = field(default=0.0, init=False)
    _planning: asyncio.Task[None] | None = field(default=None, init=False)

    def works(self, name: Key, other: Object, *, since: float | None = None) -> None:
        """Note that its agent is still working on it, and may claim objects.

        Args: since: monotonic time of the change, if earlier than now.
        """
        if self.is_outdated(other):
            self.unknown.changed(name, now=time.monotonic() if since is None else since)
        else:
            self._planned.pop(name, None)
            self.unknown.forget(name)
        self._list(name, other)

    def is_done(self, name: Key) -> None:
        """Note that it is gone, or that its agent has finished."""
        self._planned.pop(name, None)
        self._left_out.discard(name)
        self.unknown.forget(name)
        self._claims.replace(name, ())
        self._count -= self._counts.pop(name, 0)

    def at_work(self) -> list[Key]:
        return list(self._counts)

    def claimant(self, object_key: str, resource: str) -> Key | None:
        """Return the ManagedResource that is going to claim an object, unless its last pass failed to apply it."""
        names = sorted(self._claims.claimants(object_key))
        return next((name for name in names if not has_failed(self.find(name) or {}, resource)), None)

    def start_planning(self) -> None:
        """Plan the outdated ones, since an object is about to be removed."""
        self._until = time.monotonic() + _REMOVING_SECONDS
        if self.unknown and (self._planning is None or self._planning.done()):
            self._planning = asyncio.create_task(self._plan_all())

    async def close(self) -> None:
        if self._planning is not None:
            self._planning.cancel()
            await asyncio.wait([self._planning])

    async def _plan_all(self) -> None:
        while time.monotonic() < self._until and (name := self.unknown.next()) is not None:
            began = time.monotonic()
            try:
                async with asyncio.timeout(_MOST_SECONDS):
                    await self._plan(name)
            except TimeoutError:
                self._leave_out(name, f"planning took longer than {_MOST_SECONDS:.0f} s")
            except Exception as error:  # noqa: BLE001 - one must not end the planning of others
                log.error("A ManagedResource of another agent can't be planned", error=error, managedResource=str(name))
            self.unknown.known(name, as_of=began)
            await asyncio.sleep(min(_PAUSE * (time.monotonic() - began), _LONGEST_PAUSE))

    async def _plan(self, name: Key) -> None:
        other = self.find(name)
        if other is None:
            return
        try:
            basis = await self.plans.basis(other)
            if name not in self._planned or self._planned[name][0] != basis:
                wanted, problem = await self.plans.wanted(other, basis)
                self._planned[name] = basis, wanted
                if problem:
                    self._leave_out(name, problem)
        except SecretError:
            return  # its objects are unknown; its own agent reports that
        if name in self._counts:
            self._list(name, other)

    def _list(self, name: Key, other: Object) -> None:
        pending = map(key_of_reference, mappings((other.get("status") or {}).get(PENDING)))
        _, wanted = self._planned.get(name, (None, ()))
        room = MOST_CLAIMS - self._count + self._counts.get(name, 0)
        claims = frozenset(islice(chain(pending, wanted), room + 1))
        if len(claims) > room:
            self._leave_out(name, f"there are more than {MOST_CLAIMS} claims")
            claims = frozenset()
        self._claims.replace(name, claims)
        self._count += len(claims) - self._counts.get(name, 0)
        self._counts[name] = len(claims)

    def _leave_out(self, name: Key, reason: str) -> None:
        if name not in self._left_out:
            self._left_out.add(name)
            log.warning(
                "Divide a ManagedResource of another agent; objects that it takes over may be deleted meanwhile",
                managedResource=str(name),
                reason=reason,
            )


def replaced(elsewhere: Elsewhere, before: Iterable[Key], after: Iterable[tuple[Key, Object]]) -> None:
    """Take over a new list: those that are missing from it are done."""
    found = dict(after)
    for name in set(before) - found.keys():
        elsewhere.is_done(name)
    for name, other in found.items():
        elsewhere.works(name, other)
