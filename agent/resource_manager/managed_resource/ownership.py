"""Who has which object.

The live object says which ManagedResource it comes from (its origin), and the plans say which want it (their claims).
An object that its holder still wants is left to it; one that was given up goes to who wants it, without being deleted.
Before an object is removed, those that have changed meanwhile get their passes, as it may just have moved. That is
waited for in other namespaces for a moment only, so that no author decides how long others wait (see `Look`). Who gave
an object up is done with it when another one has written to it, which shows that it may: until then it waits for the
other's next pass (see `claims`), and for no longer than `CLAIM_SECONDS`.

The ManagedResources of another agent (of another class, or in namespaces that are not watched) have no plans here. Two
agents learn of each other by the live object. Who wants one that such a ManagedResource has marks it with a claim. Who
drops one with a claim asks whether the claimant still lists it, and makes the claimant its origin. The claimant takes
its mark off when it writes to the object, and only then it is left alone: from then on it is the claimant's to keep or
to delete. Marks, hand-overs and deletions have the resourceVersion as precondition: a claim comes before the deletion,
and counts, or it fails. All rests on inventories, so it does not matter who dies when: the claimant lists the object
before it marks it, and takes the mark off before it forgets it.

The claimant's agent may be late, or not run just now. So what ManagedResources of other agents want whose news it has
not seen yet is planned here (`elsewhere`), and such an object is not deleted for a while: it is about to be claimed.
Those in namespaces that are not watched are listed for that (`unwatched`), if source and target are one cluster;
otherwise they are usually for other targets.

A ManagedResource of another source cluster is not seen at all. What it has is taken over, as a control plane may have
moved, and left to it if it takes the object back (see `contests`).
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
    """The ManagedResource that has an object."""

    name: str
    is_elsewhere: bool = False
    """Another agent looks after it."""
    is_certain: bool = True
    """False: it can't be read, so it may be gone, or not want the object any more."""
    is_foreign: bool = False
    """It is not known here, and was seen to take the object back."""


HAND_OVER_SECONDS = 0.5
"""In which the other change of a move arrives."""
OTHERS_SECONDS = 0.7
"""For which a removal waits, after that, until it is known what those of other namespaces want that have changed."""
OWN_SECONDS = 10.0
"""The same for its own namespace, of which the author is usually the same."""
UNWATCHED_SECONDS = 10.0
"""The same until those in namespaces that are not watched were listed: how long that takes is not up to them."""
_AGAIN_SECONDS = 0.25
_LOOKS = 20
"""At namespaces that are not watched, that are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """At other ManagedResources, before objects are removed. Times are monotonic."""

    now: float
    own_since: float = NEVER
    """Since when something is not known of another one in the namespace."""
    others_since: float = NEVER
    """The same of those in other namespaces."""
    unwatched_since: float = NEVER
    """The same of namespaces that are not watched: when they were listed last."""
    listed: Sequence[tuple[float, float]] = ()
    """When lists of these began and ended, in order."""
    elsewhere: Elsewhere

    def left(self, unwanted_since: float) -> float:
        """Seconds until an object that is not wanted since then may be removed, or this is looked at again."""
        due = unwanted_since + HAND_OVER_SECONDS
        if self.now < due:
            return due - self.now
        # What a list shows can be looked at only then.
        listed_at = next((ended for began, ended in self.listed if began >= due), due)
        waits = (
            (self.own_since, due + OWN_SECONDS),
            (self.others_since, listed_at + OTHERS_SECONDS),
            (self.unwatched_since, due + UNWATCHED_SECONDS),
        )
        left = max((until - self.now for since, until in waits if since <= due), default=0.0)
        return min(max(left, 0.0), _AGAIN_SECONDS)

    def awaits(self, object_key: str, resource: str) -> Key | None:
        """Who is going to claim an object, as far as its last pass did not fail to apply just that."""
        return self.elsewhere.claimant(object_key, resource)

    def is_unseen(self, name: Key) -> bool:
        """Whether no agent has done anything for it so far: there may be none for its class."""
        return condition(self.elsewhere.find(name) or {}, RESOURCES_APPLIED) is None


@dataclass(eq=False, kw_only=True, slots=True)
class Ownership:
    source: Source
    plans: Plans
    restrictions: Restrictions
    resource_class: str
    cluster_id: str
    is_one_cluster: bool
    """Whether source and target are one, so that objects of all ManagedResources are in the same."""
    enqueue: Callable[[Iterable[Key]], None]
    """Called with ManagedResources for which an object became free."""
    contests: Contests = field(default_factory=Contests, init=False)
    _held_up: dict[Key, set[Key]] = field(default_factory=dict, init=False)
    """Who claims an object, and whose removal of it waits for that."""
    _waiting: dict[Key, set[Key]] = field(default_factory=dict, init=False)
    """Holders that other agents look after, and who waits for an object of theirs."""
    elsewhere: Elsewhere = field(init=False)
    _passed: dict[Key, int] = field(default_factory=dict, init=False)
    """Of ManagedResources that other agents look after: the resourceVersion with the outcome of the last pass, if
    something else was written since, such as health."""
    _listed: dict[Key, Object] = field(default_factory=dict, init=False)
    """Those in namespaces that are not watched, as of the last look."""
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
        """What is stamped on the objects of a ManagedResource."""
        return str(Origin(name, self.cluster_id))

    def owner_of(self, managed_resource: Object) -> Owner:
        """For whom its objects are written and removed."""
        origin = self.origin(key(managed_resource))
        return Owner.of(managed_resource, origin=origin, restrictions=self.restrictions)

    def claim(self, name: Key, wanted: Iterable[str]) -> None:
        """Set what a ManagedResource wants; who else wants what it gives up is looked at again."""
        wanted = frozenset(wanted)
        self.plans.known(name)
        self.contests.keep(name, wanted)
        self.enqueue(self.plans.claims.replace(name, wanted))
        if not wanted:
            self.enqueue(self._held_up.pop(name, ()))

    def tried(self, name: Key, *, refused: Collection[str], untried: Collection[str]) -> None:
        """A pass has applied all objects but these; whose removals wait for that is looked at again."""
        self.plans.claims.tried(name, refused=refused, untried=untried)
        self.enqueue(self._held_up.pop(name, ()))

    def refused(self, name: Key) -> None:
        """The same, if a pass came to apply nothing."""
        self.plans.known(name)
        self.plans.claims.refused(name)
        self.enqueue(self._held_up.pop(name, ()))

    def holder(self, own: Key, origin: str, object_key: str) -> Key | None:
        """The other ManagedResource of this origin, if it exists and still wants the object."""
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
        """The ManagedResource of an origin; None: it is of another cluster, or the origin can't be read."""
        try:
            found = parse_origin(origin)
        except ValueError:
            return None
        return found.key if found.cluster_id == self.cluster_id else None

    def is_unknown(self, origin: str) -> bool:
        """Whether no ManagedResource of this origin can be seen."""
        name = self._named(origin)
        return name is None or (self.source.sees(name.namespace) and self.source.managed_resources.get(name) is None)

    async def holder_by_now(self, own: Key, origin: str, object_key: str) -> Holder | None:
        """The same, of any agent; who waits for the object is called when it is given up.

        One that another agent looks after, in a namespace that this one does not watch, is asked for.
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
        """A ManagedResource, which another agent may look after; who waits for an object of it may get that now."""
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
        """A ManagedResource that another agent looks after, or one of its Secrets."""
        other = self.source.managed_resources.get(name)
        if other is not None and self._is_at_work(other):
            self.elsewhere.works(name, other)
        else:
            self.elsewhere.is_done(name)

    def _is_at_work(self, other: Object) -> bool:
        """Of a ManagedResource of another agent: whether it may want what it has not claimed yet."""
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
        """Whether the ManagedResource of this origin waits for the object; who may not be read is believed.

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
        """As it is now. Raises KubeError."""
        return await self.source.client.find(MANAGED_RESOURCES, name)

    def look(self, own: Key, due: Iterable[float]) -> Look:
        """At who is about to claim what is to be removed; nothing is waited for here.

        In steady state no one is: nothing is pending, and only what has changed since its agent wrote last is read.

        Args: due: for objects that are to be removed the monotonic times from which on a look counts.
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
        """Since when it is not known what is in namespaces that are not watched."""
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
            # It has changed at some time before.
            self.elsewhere.works(name, other, since=0.0)
        self._looks.append((unwatched.known_until, time.monotonic()))
        self.elsewhere.start_planning()

    def _find_elsewhere(self, name: Key) -> Object | None:
        return self._listed.get(name) or self.source.managed_resources.get(name)

    def is_held(self, own: Key, live: Object, object_key: str) -> bool:
        """Whether an object must not be removed, as it is another's, or may be.

        Of a ManagedResource that can't be seen here it is only if an agent has written so: anybody can who may write
        the object, to have it outlive its removal.
        """
        origin = annotations(live).get(keys.ORIGIN) or ""
        return is_stamped(live) if self.is_out_of_sight(origin) else self.holder(own, origin, object_key) is not None

    def is_out_of_sight(self, origin: str) -> bool:
        """Whether the ManagedResource of this origin can't be seen here, be it there or not."""
        try:
            found = parse_origin(origin)
        except ValueError:
            return False
        return found.cluster_id != self.cluster_id or not self.source.sees(found.key.namespace)

    def is_of_other_cluster(self, origin: str) -> bool:
        return self._named(origin) is None

    async def may_be_held_out_of_sight(self, origin: str, object_key: str) -> bool:
        """Of an origin that can't be seen here: whether the ManagedResource lists the object, if it can be read."""
        name = self._named(origin)
        return name is None or await self._holder_elsewhere(name, object_key) is not None

    def given_up_by(self, holders: Iterable[Key], wanted: Collection[str]) -> set[str]:
        """Of these object keys those that the ManagedResources list, and do not want as far as is known."""
        found: set[str] = set()
        for name in holders:
            other = self.source.managed_resources.get(name) or {}
            listed = {key_of_reference(reference) for reference in all_listed(other)} & set(wanted)
            found |= {each for each in listed if not self.plans.claims.claims(name, each)}
        return found

    def claimant(self, own: Key, object_key: str) -> Key | None:
        """Another ManagedResource that may be about to apply the object; the removal is looked at again after that."""
        for name in self._claimants(own, object_key):
            if self.plans.claims.standing(name, object_key) is Standing.UNTRIED:
                self._held_up.setdefault(name, set()).add(own)
                if not self.plans.claims.was_tried(name):
                    self.enqueue((name,))
                return name
        return None

    def is_applied_by_other(self, own: Key, object_key: str) -> bool:
        """Whether another ManagedResource has just found or made the object as it wants it."""
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
    """What differs in the status after a pass that had something to do; not the conditions of other controllers."""
    status = managed_resource.get("status") or {}
    fields = [status.get(field) for field in ("observedGeneration", "secretsDataChecksum", PENDING)]
    return [*fields, condition(managed_resource, RESOURCES_APPLIED)]


def _lists(managed_resource: Object, object_key: str) -> bool:
    return any(key_of_reference(reference) == object_key for reference in all_listed(managed_resource))
