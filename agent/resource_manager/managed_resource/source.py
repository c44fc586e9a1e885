"""ManagedResources and their Secrets in the source cluster, seen through watches; others by `unwatched`.

ManagedResources are cached completely. For Secrets only the version is cached permanently: a seed has tens of
thousands. Their data stay in a bounded memory until the ManagedResource that refers to them is planned, usually a
moment later; evicted data are read again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.resource_manager.common.views import MANAGED_RESOURCES_VIEW
from agent.resource_manager.managed_resource.unwatched import Unwatched
from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.references import secret_names
from kube.errors import KubeError, NotFound
from kube.objects import Key, Object, key, metadata, resource_version, uid
from kube.packing import RecentObjects
from kube.resources import SECRETS
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Client

_ABSENT_SECONDS = 1.0
"""Seconds until a missing Secret is requested from the API server again."""


@dataclass(frozen=True, slots=True)
class SecretVersion:
    uid: str
    version: int


class Source:
    """Args: memory: bytes for the data of recently seen Secrets."""

    def __init__(self, *, client: Client, caches: Caches, memory: int) -> None:
        self.client = client
        self._caches = caches
        self._data = RecentObjects(limit=memory)
        self.managed_resources: Store[Object] = caches.acquire(MANAGED_RESOURCES_VIEW, needed_at_start=True)
        self.secrets: Store[SecretVersion] = caches.acquire(
            # Stored revisions are no manifests: they are not even sent.
            View(SECRETS, self._remember, field_selector=f"type!={keys.REVISION_TYPE}"),
            needed_at_start=True,
        )
        self.secrets.subscribe(self._forget_removed)
        self.unwatched = Unwatched(client, is_watched=self.sees)
        self._absent: dict[Key, float] = {}
        """Missing Secrets with the monotonic time of the request, in this order."""

    async def synced(self) -> None:
        """Return when both are known completely."""
        await self.managed_resources.synced.wait()
        await self.secrets.synced.wait()

    async def close(self) -> None:
        await self._caches.release(self.managed_resources.view)
        await self._caches.release(self.secrets.view)

    def sees(self, namespace: str) -> bool:
        """Whether the ManagedResources of a namespace are watched; of all namespaces if it is empty."""
        return self._caches.covers(MANAGED_RESOURCES, namespace)

    def subscribe(
        self, *, managed_resource: Callable[[Change[Object]], None], secret: Callable[[Change[SecretVersion]], None]
    ) -> Callable[[], None]:
        """Subscribe to changes; return a function that ends the subscription."""
        unsubscribe = self.managed_resources.subscribe(managed_resource), self.secrets.subscribe(secret)

        def end() -> None:
            for each in unsubscribe:
                each()

        return end

    def is_outdated(self, managed_resource: Object, *, passed: int | None = None) -> bool:
        """Whether spec or Secrets may have changed since the last pass over a ManagedResource.

        Args: passed: resourceVersion with the result of that pass; None for the current one.
        """
        status = managed_resource.get("status") or {}
        if status.get("observedGeneration") != metadata(managed_resource).get("generation"):
            return True
        passed = resource_version(managed_resource) if passed is None else passed
        secrets = [Key(key(managed_resource).namespace, name) for name in secret_names(managed_resource)]
        if not self.unwatched.fresh_secrets.isdisjoint(secrets):
            return True
        return any(found is not None and found.version > passed for found in map(self._version, secrets))

    def _version(self, wanted: Key) -> SecretVersion | None:
        if known := self.secrets.get(wanted):
            return known
        found = self.unwatched.secrets.get(wanted)
        return SecretVersion(uid=uid(found), version=resource_version(found)) if found else None

    async def secret_version(self, wanted: Key) -> SecretVersion:
        """Return the current version of a Secret; an unknown one is requested, as watches may be late.

        Raises:
            NotFound: it does not exist; worded with the kind, as readers of conditions know it.
            KubeError: the request failed, or the Secret is a stored revision.
        """
        known = self._version(wanted)
        if known is None and not self._is_absent(wanted):
            found = await self.client.find(SECRETS, wanted)
            if found is None:
                self._absent[wanted] = time.monotonic()
            elif found.get("type") == keys.REVISION_TYPE:
                raise KubeError(f'Secret "{wanted.name}" holds an applied version; refer to a Secret with manifests')
            else:
                self.secrets.observe(found)
                known = self._version(wanted) or SecretVersion(uid=uid(found), version=resource_version(found))
        if known is None:
            raise NotFound(404, reason="NotFound", message=f'Secret "{wanted.name}" not found')
        return known

    def _is_absent(self, wanted: Key) -> bool:
        """Whether the API server has just reported it missing."""
        now = time.monotonic()
        while self._absent and next(iter(self._absent.values())) < now - _ABSENT_SECONDS:
            del self._absent[next(iter(self._absent))]
        return wanted in self._absent

    async def read_secret(self, wanted: Key) -> Object:
        """Read a Secret with its data, as new as the watch shows.

        Raises:
            NotFound: as `secret_version`.
        """
        body = self._data.get(wanted, version=(await self.secret_version(wanted)).version)
        return body if body is not None else await self.client.get(SECRETS, wanted)

    def release_secret(self, wanted: Key) -> None:
        """Drop data that were read and decoded; they are not needed again soon."""
        self._data.drop(wanted)

    def _remember(self, secret: Object) -> SecretVersion:
        meta = metadata(secret)
        kept = {field: meta.get(field) for field in ("namespace", "name", "uid", "resourceVersion")}
        self._data.put(key(secret), {"metadata": kept, "data": secret.get("data") or {}})
        return SecretVersion(uid=uid(secret), version=resource_version(secret))

    def _forget_removed(self, change: Change[SecretVersion]) -> None:
        if change.new is None:
            self._data.drop(change.key)
