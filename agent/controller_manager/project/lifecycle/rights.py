"""Write roles and bindings: create missing ones, change those that differ, remove those that no member needs any more.

Correct objects cost no request. Each object is written independently, so a failure keeps no other member from its
rights. A Project has few concurrent requests, so that those of others over the same connection are not delayed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial

from agent.controller_manager.project.lifecycle.rbac import DesiredRight, PresentRight, wanted_bindings, wanted_roles
from kube.objects import Key, Object, key
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client

KINDS = (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES)
BY_PROJECT = "project"
_AT_ONCE = 4
"""Concurrent requests of a Project."""


class Rights:
    """Rights of Projects; `stores` hold the objects that Projects control, for each of `KINDS`."""

    def __init__(self, *, client: Client, stores: Mapping[Resource, Store[PresentRight | None]]) -> None:
        self._client = client
        self._stores = stores

    async def ensure(self, project: Object, namespace: str) -> None:
        """Write the desired roles and bindings.

        Raises:
            ExceptionGroup: some could not be written.
        """
        await _all(partial(self._write, wanted) for wanted in wanted_roles(project, namespace))
        await _all(partial(self._write, wanted) for wanted in wanted_bindings(project, namespace))

    async def remove_stale(self, project: Object, namespace: str) -> None:
        """Remove objects of extension roles that no member has any more. Raises like `ensure`."""
        wanted = {(each.resource, each.key) for each in wanted_roles(project, namespace)}
        wanted |= {(each.resource, each.key) for each in wanted_bindings(project, namespace)}
        for resource in (ROLE_BINDINGS, CLUSTER_ROLES):
            found = self._extensions(resource, project)
            stale = [(own, each) for own, each in found if (resource, own) not in wanted]
            await _all(partial(self._delete, resource, *each) for each in stale)

    def _extensions(self, resource: Resource, project: Object) -> Iterator[tuple[Key, PresentRight]]:
        for own, present in self._stores[resource].by_index(BY_PROJECT, key(project).name):
            if present is not None and present.is_extension_of(project):
                yield own, present

    async def _write(self, wanted: DesiredRight) -> None:
        present = self._stores[wanted.resource].get(wanted.key)
        if present is None:
            if created := await self._client.create_if_missing(wanted.resource, wanted.body()):
                self._stores[wanted.resource].observe(created)
                return
            # No Project controls it yet, or the cache has not observed it.
            present = PresentRight.of(await self._client.get(wanted.resource, wanted.key))
        if wanted.is_rebound(present):
            await self._delete(wanted.resource, wanted.key, present)
            self._stores[wanted.resource].observe(await self._client.create(wanted.resource, wanted.body()))
        elif change := wanted.change_of(present):
            meta = {**change.get("metadata", {}), "resourceVersion": present.version}
            body = {**change, "metadata": meta}
            written = await self._client.patch(wanted.resource, wanted.key, body)
            self._stores[wanted.resource].observe(written)

    async def _delete(self, resource: Resource, own: Key, present: PresentRight) -> None:
        await self._client.delete_if_exists(resource, own, uid=present.uid)


async def _all(writes: Iterable[Callable[[], Awaitable[None]]]) -> None:
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def in_turn(write: Callable[[], Awaitable[None]]) -> None:
        async with at_once:
            await write()

    results = await asyncio.gather(*map(in_turn, writes), return_exceptions=True)
    errors = [result for result in results if isinstance(result, Exception)]
    if errors:
        raise ExceptionGroup("Roles or RoleBindings could not be written", errors)
