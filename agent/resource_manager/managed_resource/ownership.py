"""Ownership of objects.

The live object states which ManagedResource it comes from (its origin), and the plans state which ones want it (their
claims). An object that its holder still wants is left to it; one that was given up goes to a ManagedResource that wants
it, without being deleted.

Before an object is removed, other ManagedResources that have changed meanwhile get their passes, as the object may just
have moved. For those in other namespaces the removal waits only for a moment, so that no author decides how long others
wait (see `Look`). The previous holder is done with an object as soon as another one has written to it, which shows its
permission: until then it waits for the other's next pass (see `claims`), and for no longer than `CLAIM_SECONDS`.

The ManagedResources of another agent (of another class, or in namespaces that are not watched) have no plans here. Two
agents learn of each other by the live object. A ManagedResource that wants an object of the other agent marks it with a
claim. The one that drops a claimed object checks whether the claimant still lists it, and makes the claimant its
origin. The claimant removes its mark when it writes to the object, and only then the previous holder leaves it alone:
from then on the claimant keeps or deletes it. Marks, hand-overs and deletions have the resourceVersion as precondition:
a claim either precedes the deletion, and counts, or fails. All rests on inventories, so agents may end at any time: the
claimant lists the object before it marks it, and removes the mark before it forgets it.

The claimant's agent may be late, or not running. So unseen changes of ManagedResources of other agents are planned here
(`elsewhere`), and an object that they want is not deleted for a while, since a claim will follow. Those in namespaces
that are not watched are listed for that (`unwatched`), if source and target are one cluster; otherwise they are usually
for other targets.

A ManagedResource of another source cluster is invisible. Its objects are taken over, as a control plane may have moved,
and left to it if it takes the object back (see `contests`).
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog

from agent.resource_manager.managed_resource.elsewhere import Elsewhere
from agent.resource_manager.managed_resource.plans import Plans
from agent.resource_manager.managed_resource.rules.claims import Standing
from agent.resource_manager.managed_resource.rules.contests import Contests
from agent.resource_manager.managed_resource.rules.permissions import Owner
from agent.resource_manager.managed_resource.rules.unknown import NEVER
from agent.resource_manager.managed_resource.source import Source
from config.resource_manager.restrictions import Restrictions
from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_APPLIED
from gardener.managed_resource.conditions import has_failed, is_held_up
from gardener.managed_resource.dependencies import named_dependencies
from gardener.managed_resource.inventory import PENDING, all_listed
from gardener.managed_resource.references import key_of_reference
from gardener.managed_resource.stamps import is_stamped
from gardener.responsibility import Origin, belongs_to_class, is_ignored, parse_origin
from kube.errors import Forbidden, KubeError
from kube.objects import Key, Object, annotations, condition, is_deleting, key, resource_version
from kube.runtime.cache import Change

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Holder:
    """ManagedResource that holds an object."""

    name: str
    is_elsewhere: bool = False
    """Whether another agent is responsible for it."""
    is_certain: bool = True
    """Whether it can be read; if not, it may be gone, or not want the object any more."""


HAND_OVER_SECONDS = 0.5
"""Time in which the other change of a move arrives."""
OTHERS_SECONDS = 0.7
"""Time that a removal waits after that until the claims of changed ManagedResources in other namespaces are known."""
OWN_SECONDS = 10.0
"""The same for its own namespace, which usually has the same author."""
UNWATCHED_SECONDS = 10.0
"""The same until namespaces that are not watched have been listed; their authors cannot influence that time."""
_AGAIN_SECONDS = 0.25
_LOOKS = 20
"""Number of remembered lists of namespaces that are not watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Snapshot of other ManagedResources, before objects are removed. Times are monotonic."""

    now: float
    own_since: float = NEVER
    """Time since when the claims of another one in the namespace are unknown."""
    others_since: float = NEVER
    """The same for other namespaces."""
    unwatched_since: float = NEVER
    """The same for namespaces that are not watched: the time of their last list."""
    listed: Sequence[tuple[float, float]] = ()
    """Times at which lists of these began and ended, in order."""
    elsewhere: Elsewhere

    def left(self, unwanted_since: float) -> float:
        """Seconds until an object that is obsolete since then may be removed, or is checked again."""
        due = unwanted_since + HAND_OVER_SECONDS
        if self.now < due:
            return due - self.now
        # The content of a list is known only when it ends.
        listed_at = next((ended for began, ended in self.listed if began >= due), due)
        waits = (
            (self.own_since, due + OWN_SECONDS),
            (self.others_since, listed_at + OTHERS_SECONDS),
            (self.unwatched_since, due + UNWATCHED_SECONDS),
        )
        left = max((until - self.now for since, until in waits if since <= due), default=0.0)
        return min(max(left, 0.0), _AGAIN_SECONDS)

    def awaits(self, object_key: str, resource: str) -> Key | None:
        """Return the one that is going to claim an object, unless its last pass failed to apply that object."""
        return self.elsewhere.claimant(object_key, resource)

    def is_unseen(self, name: Key) -> bool:
        """Whether no agent has handled it so far: there may be none for its class."""
        return condition(self.elsewhere.find(name) or {}, RESOURCES_APPLIED) is None


@dataclass(eq=False, kw_only=True, slots=True)
class Ownership:
    source: Source
    plans: Plans
    restrictions: Restrictions
    resource_class: str
    cluster_id: str
    is_one_cluster: bool
    """Whether source and target are the same cluster, so that all ManagedResources have their objects in it."""
    enqueue: Callable[[Iterable[Key]], None]
    """Called with ManagedResources for which an object became free."""
    contests: Contests = field(default_factory=Contests, init=False)
    _held_up: dict[Key, set[Key]] = field(default_factory=dict, init=False)
    """ManagedResources whose removals wait for a claimant, by claimant."""
    _waiting: dict[Key, set[Key]] = field(default_factory=dict, init=False)
    """ManagedResources that wait for an object, by its holder of another agent."""
    elsewhere: Elsewhere = field(init=False)
    _passed: dict[Key, int] = field(default_factory=dict, init=False)
    """ResourceVersion with the result of the last pass of ManagedResources of other agents, if other parts, such as
    health, were written since."""
    _listed: dict[Key, Object] = field(default_factory=dict, init=False)
    """ManagedResources in namespaces that are not watched, as of the last list."""
    _looks: deque[tuple[float, float]] = field(default_factory=partial(deque, maxlen=_LOOKS), init=False)
    _looking: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.elsewhere = Elsewhere(plans=self.plans, find=self._find_elsewhere, is_outdated=self._is_outdated)

    async def close(self) -> None:
        await self.elsewhere.close()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    def origin(self, name: Key) -> str:
        """Return the origin that is stamped on the objects of a ManagedResource."""
        return str(Origin(name, self.cluster_id))

    def owner_of(self, managed_resource: Object) -> Owner:
        """Return the owner in whose name its objects are written and removed."""
        origin = self.origin(key(managed_resource))
        return Owner.of(managed_resource, origin=origin, restrictions=self.restrictions)

    def claim(self, name: Key, wanted: Iterable[str]) -> None:
        """Set the claims of a ManagedResource; enqueue those that want objects that it gives up."""
        wanted = frozenset(wanted)
        self.plans.known(name)
        self.contests.keep(name, wanted)
        self.enqueue(self.plans.claims.replace(name, wanted))
        if not wanted:
            self.enqueue(self._held_up.pop(name, ()))

    def tried(self, name: Key, *, refused: Collection[str], untried: Collection[str]) -> None:
        """Note the objects that a pass did not apply; enqueue ManagedResources whose removals wait for the pass."""
        self.plans.claims.tried(name, refused=refused, untried=untried)
        self.enqueue(self._held_up.pop(name, ()))

    def refused(self, name: Key) -> None:
        """Note that a pass applied nothing; enqueue ManagedResources whose removals wait for it."""
        self.plans.known(name)
        self.plans.claims.refused(name)
        self.enqueue(self._held_up.pop(name, ()))

    def holder(self, own: Key, origin: str, object_key: str) -> Key | None:
        """Return the other ManagedResource of this origin, if it exists and still wants the object."""
        name = self._named(origin)
        if name is None or name == own:
            return None
        other = self.source.managed_resources.get(name)
        if other is None or is_deleting(other):
            return None
        if self.plans.has_plan(name):
            return name if self.plans.claims.claims(name, object_key) else None
        return name if _lists(other, object_key) else None

    def _named(self, origin: str) -> Key | None:
        """Return the ManagedResource of an origin; None if it is in another cluster, or the origin is invalid."""
        try:
            found = parse_origin(origin)
        except ValueError:
            return None
        return found.key if found.cluster_id == self.cluster_id else None

    def is_unknown(self, origin: str) -> bool:
        """Whether no ManagedResource of this origin is visible."""
        name = self._named(origin)
        return name is None or (self.source.sees(name.namespace) and self.source.managed_resources.get(name) is None)

    async def holder_by_now(self, own: Key, origin: str, object_key: str) -> Holder | None:
        """Return the holder, of any agent; `own` is enqueued when that gives the object up.

        A ManagedResource of another agent in a namespace that is not watched is read.
        """
        name = self._named(origin)
        if name is not None and not self.source.sees(name.namespace):
            return await self._holder_elsewhere(name, object_key)
        name = self.holder(own, origin, object_key)
        if name is None:
            return None
        other = self.source.managed_resources.get(name)
        if other is None or belongs_to_class(other, resource_class=self.resource_class):
            return Holder(str(name))
        self._waiting.setdefault(name, set()).add(own)
        return Holder(str(name), is_elsewhere=True)

    def changed(self, change: Change[Object], *, is_elsewhere: bool) -> None:
        """Handle a change of a ManagedResource, perhaps of another agent; enqueue those that wait for its objects."""
        name, old, new = change.key, change.old, change.new
        if not is_elsewhere:
            self._passed.pop(name, None)
            self.elsewhere.is_done(name)
            return
        if old is not None and new is not None and _outcome(old) == _outcome(new):
            self._passed.setdefault(name, resource_version(old))
        else:
            self._passed.pop(name, None)
        self.changed_elsewhere(name)
        if waiting := self._waiting.pop(name, None):
            self.enqueue(waiting)

    def changed_elsewhere(self, name: Key) -> None:
        """Handle a change of a ManagedResource of another agent, or of one of its Secrets."""
        other = self.source.managed_resources.get(name)
        if other is not None and self._is_at_work(other):
            self.elsewhere.works(name, other)
        else:
            self.elsewhere.is_done(name)

    def _is_at_work(self, other: Object) -> bool:
        """Whether a ManagedResource of another agent may want objects that it has not claimed yet."""
        if is_deleting(other) or is_ignored(other) or is_held_up(other):
            return False
        return bool(_pending(other)) or self._is_outdated(other)

    def _is_outdated(self, other: Object) -> bool:
        return self.source.is_outdated(other, passed=self._passed.get(key(other)))

    async def _holder_elsewhere(self, name: Key, object_key: str) -> Holder | None:
        try:
            other = await self._read(name)
        except Forbidden:
            return Holder(str(name), is_elsewhere=True, is_certain=False)
        is_kept = other is not None and not is_deleting(other) and _lists(other, object_key)
        return Holder(str(name), is_elsewhere=True) if is_kept else None

    async def is_claimed(self, own: Key, claimant: str, object_key: str, *, resource: str) -> bool:
        """Whether the ManagedResource of this origin waits for the object; true if it may not be read.

        Args: resource: the object's resource string.
        """
        name = self._named(claimant)
        if name is None or name == own:
            return False
        try:
            other = await self._read(name)
        except Forbidden:
            return True
        if other is None or is_deleting(other) or is_ignored(other):
            return False
        if is_held_up(other) and own not in named_dependencies(other):
            return False
        return _lists(other, object_key) and not has_failed(other, resource)

    async def _read(self, name: Key) -> Object | None:
        """Read the current state."""
        return await self.source.client.find(MANAGED_RESOURCES, name)

    def look(self, own: Key, due: Iterable[float]) -> Look:
        """Return pending claims of objects that are about to be removed, without waiting.

        The steady state has none: nothing is pending, and only changes since the last write of an agent are read.

        Args: due: for objects to be removed, the monotonic times from which on a snapshot counts.
        """
        now = time.monotonic()
        own_since, others_since = self.plans.unknown.since(own)
        unwatched_since = NEVER
        since = max((moment for moment in due if moment <= now), default=None)
        self.elsewhere.start_planning()
        if since is not None:
            elsewhere_own, elsewhere_others = self.elsewhere.unknown.since(own)
            own_since = min(own_since, elsewhere_own)
            others_since = min(others_since, elsewhere_others)
            unwatched_since = self._unwatched_since(since)
        return Look(
            now=now,
            own_since=own_since,
            others_since=others_since,
            unwatched_since=unwatched_since,
            listed=self._looks,
            elsewhere=self.elsewhere,
        )

    def _unwatched_since(self, since: float) -> float:
        """Return the time since when the content of namespaces that are not watched is unknown."""
        if not self.is_one_cluster or self.source.sees(""):
            return NEVER
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_at_unwatched(since))
        known_until = self.source.unwatched.known_until
        return NEVER if known_until >= since else known_until

    async def _look_at_unwatched(self, since: float) -> None:
        unwatched = self.source.unwatched
        before = unwatched.managed_resources
        try:
            await unwatched.look(since=since, is_at_work=self._is_at_work, resource_class=self.resource_class)
        except KubeError as error:
            log.info("ManagedResources in namespaces that are not watched can't be listed", error=str(error))
            return
        if unwatched.managed_resources is before or not unwatched.may_be_listed:
            return
        known, self._listed = self._listed, {key(each): each for each in unwatched.managed_resources}
        for name in known.keys() - self._listed.keys():
            self.elsewhere.is_done(name)
        for name, other in self._listed.items():
            # It has changed at some earlier time.
            self.elsewhere.works(name, other, since=0.0)
        self._looks.append((unwatched.known_until, time.monotonic()))
        self.elsewhere.start_planning()

    def _find_elsewhere(self, name: Key) -> Object | None:
        return self._listed.get(name) or self.source.managed_resources.get(name)

    def is_held(self, own: Key, live: Object, object_key: str) -> bool:
        """Whether an object must not be removed, as another ManagedResource holds it, or may hold it.

        An invisible holder only counts if an agent has written the stamp: any client with write access to the object
        could set the origin to have the object outlive its removal.
        """
        origin = annotations(live).get(keys.ORIGIN) or ""
        return is_stamped(live) if self.is_out_of_sight(origin) else self.holder(own, origin, object_key) is not None

    def is_out_of_sight(self, origin: str) -> bool:
        """Whether the ManagedResource of this origin would be invisible here even if it exists."""
        try:
            found = parse_origin(origin)
        except ValueError:
            return False
        return found.cluster_id != self.cluster_id or not self.source.sees(found.key.namespace)

    def is_of_other_cluster(self, origin: str) -> bool:
        return self._named(origin) is None

    async def may_be_held_out_of_sight(self, origin: str, object_key: str) -> bool:
        """Whether the invisible ManagedResource of an origin lists the object, as far as it can be read."""
        name = self._named(origin)
        return name is None or await self._holder_elsewhere(name, object_key) is not None

    def given_up_by(self, holders: Iterable[Key], wanted: Collection[str]) -> set[str]:
        """Return the object keys among these that the ManagedResources list, and as far as known do not want."""
        found: set[str] = set()
        for name in holders:
            other = self.source.managed_resources.get(name) or {}
            listed = {key_of_reference(reference) for reference in all_listed(other)} & set(wanted)
            found |= {each for each in listed if not self.plans.claims.claims(name, each)}
        return found

    def claimant(self, own: Key, object_key: str) -> Key | None:
        """Return another ManagedResource that may be about to apply the object; its pass enqueues the removal again."""
        for name in self._claimants(own, object_key):
            if self.plans.claims.standing(name, object_key) is Standing.UNTRIED:
                self._held_up.setdefault(name, set()).add(own)
                if not self.plans.claims.was_tried(name):
                    self.enqueue((name,))
                return name
        return None

    def is_applied_by_other(self, own: Key, object_key: str) -> bool:
        """Whether another ManagedResource has just applied the object or found it up to date."""
        claims = self.plans.claims
        return any(claims.standing(name, object_key) is Standing.APPLIED for name in self._claimants(own, object_key))

    def _claimants(self, own: Key, object_key: str) -> Iterator[Key]:
        for name in self.plans.claims.others(own, object_key):
            other = self.source.managed_resources.get(name)
            if other is not None and not is_deleting(other) and not is_ignored(other):
                yield name


def _pending(managed_resource: Object) -> list[Object]:
    return (managed_resource.get("status") or {}).get(PENDING) or []


def _outcome(managed_resource: Object) -> object:
    """Parts of the status that a pass with changes writes, without the conditions of other controllers."""
    status = managed_resource.get("status") or {}
    fields = [status.get(field) for field in ("observedGeneration", "secretsDataChecksum", PENDING)]
    return [*fields, condition(managed_resource, RESOURCES_APPLIED)]


def _lists(managed_resource: Object, object_key: str) -> bool:
    return any(key_of_reference(reference) == object_key for reference in all_listed(managed_resource))
