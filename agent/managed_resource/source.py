"""The ManagedResources and their Secrets in the source cluster, seen through watches.

ManagedResources are held whole. Of Secrets only the version is kept for good: a seed has tens of thousands. Their
data waits in a bounded memory until the ManagedResource that names them is planned, usually a moment later; what was
pushed out is read again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kube.bodies import Bodies
from kube.cache import Caches, Change, Store, View, without_managed_fields
from kube.client import Client
from kube.errors import NotFound
from kube.objects import Key, Object, key, metadata, resource_version, uid
from kube.resources import SECRETS, Resource

MANAGED_RESOURCES = Resource(
    "resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", namespaced=True
)


@dataclass(frozen=True, slots=True)
class SecretVersion:
    uid: str
    version: int


def secret_names(managed_resource: Object) -> list[str]:
    """In the order of `spec.secretRefs`."""
    references = (managed_resource.get("spec") or {}).get("secretRefs") or []
    return [reference.get("name") or "" for reference in references]


def _secret_keys(managed_resource: Object) -> list[Key]:
    namespace = key(managed_resource).namespace
    return [Key(namespace, name) for name in dict.fromkeys(secret_names(managed_resource))]


_MANAGED_RESOURCES_VIEW = View(
    MANAGED_RESOURCES, without_managed_fields, indexes=(("secret", _secret_keys),)
)


class Source:
    """Args: memory: bytes for the data of Secrets that were seen lately."""

    def __init__(self, *, client: Client, caches: Caches, memory: int) -> None:
        self.client = client
        self._data = Bodies(limit=memory)
        self.managed_resources: Store[Object] = caches.acquire(_MANAGED_RESOURCES_VIEW, needed_at_start=True)
        self.secrets: Store[SecretVersion] = caches.acquire(View(SECRETS, self._remember), needed_at_start=True)
        self.secrets.subscribe(self._forget_removed)

    def users_of(self, secret: Key) -> list[Object]:
        """The ManagedResources that name a Secret."""
        return [found for _, found in self.managed_resources.by_index("secret", secret)]

    def subscribe(
        self,
        *,
        managed_resource: Callable[[Change[Object]], None],
        secret: Callable[[Change[SecretVersion]], None],
    ) -> None:
        self.managed_resources.subscribe(managed_resource)
        self.secrets.subscribe(secret)

    async def read_secret(self, wanted: Key) -> Object:
        """A Secret with its data, as new as the watch tells.

        Raises:
            NotFound: it does not exist; worded after the kind, as readers of conditions know it.
            KubeError: it can't be read.
        """
        known = self.secrets.get(wanted)
        if known is None:
            raise NotFound(404, reason="NotFound", message=f'Secret "{wanted.name}" not found')
        body = self._data.get(wanted, version=known.version)
        if body is None:
            body = await self.client.get(SECRETS, wanted.name, namespace=wanted.namespace)
        return body

    def release_secret(self, wanted: Key) -> None:
        """The data was read and decoded; it will not be wanted again soon."""
        self._data.drop(wanted)

    def _remember(self, secret: Object) -> SecretVersion:
        meta = metadata(secret)
        kept = {field: meta.get(field) for field in ("namespace", "name", "uid", "resourceVersion")}
        self._data.put(key(secret), {"metadata": kept, "data": secret.get("data") or {}})
        return SecretVersion(uid=uid(secret), version=resource_version(secret))

    def _forget_removed(self, change: Change[SecretVersion]) -> None:
        if change.new is None:
            self._data.drop(change.key)
