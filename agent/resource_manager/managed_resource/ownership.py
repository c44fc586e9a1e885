"""Who has which object.

The live object says which ManagedResource it comes from (its origin), and the plans say which want it (their claims).
An object that its holder still wants is left to it; one that was given up goes to who wants it, without being deleted.
Before an object is taken or removed, the claims of all ManagedResources are brought up to date: it may just have moved.
Who gave an object up is done with it when another one has written to it, which shows that it may: until then it waits
for the other's next pass (see `claims`), and for no longer than `CLAIM_SECONDS`.

The ManagedResources of another agent (of another class, or in namespaces that are not watched) have no plans here. Two
agents learn of each other by the live object. Who wants one that such a ManagedResource has marks it with a claim. Who
drops one with a claim asks whether the claimant still lists it, and makes the claimant its origin. The claimant takes
its mark off when it writes to the object, and only then it is left alone: from then on it is the claimant's to keep or
to delete. Marks, hand-overs and deletions have the resourceVersion as precondition: a claim comes before the deletion,
and counts, or it fails. All rests on inventories, so it does not matter who dies when: the claimant lists the object
before it marks it, and takes the mark off before it forgets it.

The claimant's agent may be late, or not run just now. So what ManagedResources of other agents want whose news it has
not seen yet is planned here, for once, and such an object is not deleted for a while: it is about to be claimed. Those
in namespaces that are not watched are listed for that (`unwatched`), if source and target are one cluster; otherwise
they are usually for other targets.

A ManagedResource of another source cluster is not seen at all. What it has is taken over, as a control plane may have
moved, and left to it if it takes the object back (see `contests`).
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agent.resource_manager.managed_resource.plans import Plans
from agent.resource_manager.managed_resource.rules.claims import Standing
from agent.resource_manager.managed_resource.rules.contests import Contests
from agent.resource_manager.managed_resource.rules.permissions import Owner
from agent.resource_manager.managed_resource.source import Source
from config.resource_manager.restrictions import Restrictions
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_APPLIED
from gardener.managed_resource.conditions import has_failed, is_held_up
from gardener.managed_resource.dependencies import named_dependencies
from gardener.managed_resource.inventory import PENDING, all_listed
from gardener.managed_resource.references import key_of_reference
from gardener.responsibility import Origin, belongs_to_class, is_ignored, parse_origin
from kube.errors import Forbidden
from kube.objects import Key, Object, condition, is_deleting, key, resource_version
from kube.runtime.cache import Change


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


@dataclass(frozen=True, slots=True)
class Look:
    """At ManagedResources of other agents, before objects are removed. Times are monotonic."""

    now: float
    at: float
    """When it was: an object that is unwanted for too short a time by then has to wait for another one."""
    next_look: float
    awaited: Mapping[str, Key] = field(default_factory=dict)
    """Object keys, and the ManagedResources that have not claimed them yet, but are going to."""
    waited_for: Mapping[Key, Object] = field(default_factory=dict)
    """These ManagedResources."""

    def awaits(self, object_key: str, resource: str) -> Key | None:
        """Who is going to claim an object, as far as its last pass did not fail to apply just that."""
        name = self.awaited.get(object_key)
        return None if name is None or has_failed(self.waited_for.get(name, {}), resource) else name

    def is_unseen(self, name: Key) -> bool:
        """Whether no agent has done anything for it so far: there may be none for its class."""
        return condition(self.waited_for.get(name, {}), RESOURCES_APPLIED) is None


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
    _may_claim: set[Key] = field(default_factory=set, init=False)
    """The ManagedResources that other agents look after, and that may want what they have not claimed yet."""
    _passed: dict[Key, int] = field(default_factory=dict, init=False)
    """Of ManagedResources that other agents look after: the resourceVersion with the outcome of the last pass, if
    something else was written since, such as health."""

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
        """The same after a look at all that has changed: the object may just have been given up by the other.

        One that another agent looks after, in a namespace that this one does not watch, is asked for.
        """
        name = self._named(origin)
        if name is not None and not self.source.sees(name.namespace):
            return await self._holder_elsewhere(name, object_key)
        if self.holder(own, origin, object_key) is None:
            return None
        await self.look_at_all()
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
            self._may_claim.discard(name)
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
            self._may_claim.add(name)
        else:
            self._may_claim.discard(name)

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
        return await self.source.client.find(MANAGED_RESOURCES, name.name, namespace=name.namespace)

    async def look_at_all(self) -> None:
        """Have the claims of all ManagedResources known; who waits for what is given up is looked at again."""
        self.enqueue(await self.plans.bring_up_to_date())

    async def look(self, due: Iterable[float]) -> Look:
        """At who is about to claim what is to be removed.

        In steady state no one is: nothing is pending, and only what has changed since its agent wrote last is read.

        Args: due: for objects that are to be removed the monotonic times from which on a look counts.

        Raises:
            KubeError: that is not known.
        """
        at = next_look = now = time.monotonic()
        since = max((moment for moment in due if moment <= now), default=None)
        if since is not None and self.is_one_cluster and not self.source.sees(""):
            unwatched = self.source.unwatched
            at = await unwatched.look(since=since, is_at_work=self._is_at_work, resource_class=self.resource_class)
            next_look = unwatched.next_look
        awaited, waited_for = await self._awaited()
        return Look(now, at, next_look, awaited, waited_for)

    async def _awaited(self) -> tuple[dict[str, Key], dict[Key, Object]]:
        found: dict[str, Key] = {}
        outdated, others = [], {}
        watched = (self.source.managed_resources.get(name) for name in self._may_claim)
        for other in (*watched, *self.source.unwatched.managed_resources):
            if other is None:
                continue
            found |= {key_of_reference(each): key(other) for each in _pending(other)}
            others[key(other)] = other
            if self._is_outdated(other):
                outdated.append(other)
        return ({**found, **await self.plans.wanted_elsewhere(outdated)} if outdated else found), others

    def is_held(self, own: Key, origin: str, object_key: str) -> bool:
        """Whether an object of this origin must not be removed, as it is another's or may be."""
        try:
            found = parse_origin(origin)
        except ValueError:
            return False
        if found.cluster_id != self.cluster_id or not self.source.sees(found.key.namespace):
            return True
        return self.holder(own, origin, object_key) is not None

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
