"""Who has which object.

The live object says which ManagedResource it comes from (its origin), and the plans say which want it (their claims).
An object that its holder still wants is left to it; one that was given up goes to who wants it, without being deleted.
Before an object is taken or removed, the claims of all ManagedResources are brought up to date: it may just have moved.
"""

from collections.abc import Callable, Iterable

from agent.api import MANAGED_RESOURCES
from agent.managed_resource.inventory import all_listed
from agent.managed_resource.plans import Plans
from agent.managed_resource.references import key_of_reference
from agent.managed_resource.source import Source
from agent.responsibility import Origin, is_ignored, parse_origin
from kube.errors import Forbidden, NotFound
from kube.objects import Key, is_deleting


class Ownership:
    """Args: wake: has ManagedResources looked at, since an object became free for them."""

    def __init__(self, *, source: Source, plans: Plans, cluster_id: str, wake: Callable[[Iterable[Key]], None]) -> None:
        self._source = source
        self._plans = plans
        self._cluster_id = cluster_id
        self._wake = wake

    def origin(self, name: Key) -> str:
        """What is stamped on the objects of a ManagedResource."""
        return str(Origin(name, self._cluster_id))

    def claim(self, name: Key, wanted: Iterable[str]) -> None:
        """Set what a ManagedResource wants; who else wants what it gives up is looked at again."""
        for given_up in self._plans.claims.replace(name, wanted):
            self._wake(self._plans.claims.others(name, given_up))

    def holder(self, own: Key, origin: str, object_key: str) -> Key | None:
        """The other ManagedResource of this origin, if it exists and still wants the object."""
        try:
            found = parse_origin(origin)
        except ValueError:
            return None
        if found.cluster_id != self._cluster_id or found.key == own:
            return None
        other = self._source.managed_resources.get(found.key)
        if other is None or is_deleting(other):
            return None
        if self._plans.has_plan(found.key):
            return found.key if self._plans.claims.claims(found.key, object_key) else None
        listed = all_listed(other)
        return found.key if any(key_of_reference(reference) == object_key for reference in listed) else None

    async def holder_by_now(self, own: Key, origin: str, object_key: str) -> Key | None:
        """The same after a look at all that has changed: the object may just have been given up by the other.

        One that another agent looks after, in a namespace that this one does not watch, is asked for.
        """
        elsewhere = self._unseen(origin)
        if elsewhere is not None:
            return await self._holder_elsewhere(elsewhere, object_key)
        if self.holder(own, origin, object_key) is None:
            return None
        await self.look_at_all()
        return self.holder(own, origin, object_key)

    def _unseen(self, origin: str) -> Key | None:
        """The ManagedResource of this origin, if it is in a namespace that is not watched."""
        try:
            found = parse_origin(origin)
        except ValueError:
            return None
        is_ours = found.cluster_id == self._cluster_id
        return found.key if is_ours and not self._source.sees(found.key.namespace) else None

    async def _holder_elsewhere(self, name: Key, object_key: str) -> Key | None:
        try:
            other = await self._source.client.get(MANAGED_RESOURCES, name.name, namespace=name.namespace)
        except (NotFound, Forbidden):  # who may not read there can't tell
            return None
        is_kept = not is_deleting(other) and any(key_of_reference(each) == object_key for each in all_listed(other))
        return name if is_kept else None

    async def look_at_all(self) -> None:
        """Have the claims of all ManagedResources known; who waits for what is given up is looked at again."""
        self._wake(await self._plans.bring_up_to_date())

    def is_held(self, own: Key, origin: str, object_key: str) -> bool:
        """Whether an object of this origin must not be removed, as it is another's or may be."""
        try:
            found = parse_origin(origin)
        except ValueError:
            return False
        if found.cluster_id != self._cluster_id or not self._source.sees(found.key.namespace):
            return True
        return self.holder(own, origin, object_key) is not None

    def is_wanted_by_other(self, own: Key, object_key: str) -> bool:
        for name in self._plans.claims.others(own, object_key):
            other = self._source.managed_resources.get(name)
            if other is not None and not is_deleting(other) and not is_ignored(other):
                return True
        return False
