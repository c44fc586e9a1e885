"""State of the objects of ManagedResources, from the watches, or read where these do not reach.

An object that a watch should see but does not is read as well before it is reported: it may lack our label, as do
objects whose manifest requests to ignore them.
"""

from collections.abc import Callable, Iterable, Mapping

from agent.resource_manager.health.projections import ObjectHealth, Project
from gardener.health.findings import Reference
from kube.apply.kinds import Part
from kube.errors import KindNotServed, KubeError, NotFound
from kube.objects import Key, group_of
from kube.resources import Resource
from kube.runtime.client import Form
from process.clusters import Cluster

KindName = tuple[str, str]
"""apiVersion and kind."""
Kind = Resource | KubeError
"""The kind with this name, or the reason why there is none."""


class NotKnown(Exception):
    """The state in memory does not suffice."""

    def __init__(self, *, is_coming: bool = False) -> None:
        super().__init__()
        self.is_coming = is_coming
        """Whether a pending list will suffice."""


class Objects:
    """Args:
    part: part of the watches, with the results of `project`.
    form: form of objects of a kind that `project` needs.
    """

    def __init__(
        self, *, part: Part[ObjectHealth], project: Project, form: Callable[[Resource], Form], cluster: Cluster
    ) -> None:
        self._part = part
        self._project = project
        self._form = form
        self._client = cluster.client
        self._discovery = cluster.discovery
        self._unserved: dict[Key, frozenset[str]] = {}

    async def watch(self, user: Key, names: Iterable[KindName]) -> Mapping[KindName, Kind]:
        """Watch exactly these kinds for a ManagedResource; return the kind of each name."""
        kinds = {name: await self._find(name) for name in sorted(set(names))}
        unserved = frozenset(group_of(k.api_version) for k in kinds.values() if isinstance(k, KindNotServed))
        if unserved:
            self._unserved[user] = unserved
        else:
            self._unserved.pop(user, None)
        await self._part.use(user, [kind for kind in kinds.values() if isinstance(kind, Resource)])
        return kinds

    def waiting_for(self, group: str) -> list[Key]:
        """ManagedResources with objects of kinds of this group that are not served."""
        return [user for user, groups in self._unserved.items() if group in groups]

    def known(self, kind: Kind, reference: Reference) -> ObjectHealth | None:
        """Return the state from the watches, or the last one of a Job that was cleaned up after it finished."""
        if isinstance(kind, KubeError):
            return None
        name = _key(kind, reference)
        return self._part.get(kind, name) or self._part.finished(kind, name)

    def has(self, api_version: str, reference: Reference) -> bool:
        """Whether the watches know the object; its apiVersion may differ from the listed one."""
        resource = self._discovery.known(api_version, reference.kind)
        return resource is not None and self.known(resource, reference) is not None

    def remembered(self, api_version: str, reference: Reference) -> ObjectHealth:
        """Return the state of an object from the watches; its apiVersion may differ from the listed one.

        Raises:
            NotKnown: the object would have to be read.
        """
        resource = self._discovery.known(api_version, reference.kind)
        kept = self.known(resource, reference) if resource is not None else None
        if kept is None:
            raise NotKnown
        return kept

    async def read(self, user: Key, resource: Kind, reference: Reference, *, may_read: bool) -> ObjectHealth | None:
        """Read the current object; None if it does not exist.

        Raises:
            KindNotServed: its kind does not exist (any more).
            NotKnown: it may not be read.
            KubeError: it cannot be read.
        """
        if isinstance(resource, KindNotServed) or (isinstance(resource, KubeError) and may_read):
            raise resource.with_traceback(None)
        if isinstance(resource, KubeError) or not may_read:
            raise NotKnown
        name = _key(resource, reference)
        try:
            obj = await self._client.get(resource, name, form=self._form(resource))
        except NotFound:
            return None
        except KindNotServed:
            self._discovery.invalidate(resource.group)
            self._unserved[user] = self._unserved.get(user, frozenset()) | {resource.group}
            raise
        return self._project(resource, obj)

    async def _find(self, name: KindName) -> Kind:
        try:
            return await self._discovery.find(*name)
        except KubeError as error:
            return error


def _key(resource: Resource, reference: Reference) -> Key:
    return Key(reference.namespace if resource.namespaced else "", reference.name)
