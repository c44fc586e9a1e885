"""Objects of a garden, as far as the user may read them.

Unreadable objects are remembered, so that missing results are not mistaken for findings.
"""

from collections.abc import Callable

from kube.errors import Forbidden, KindNotServed, KindUnavailable
from kube.objects import Key, Object, key
from kube.resources import Resource
from kube.runtime.client import Client, Form, Selection
from kube.runtime.kind_definitions import require_gone
from kubectl.errors import UserError, not_found
from kubectl.kinds import plural


def unknown_kind(resource: Resource) -> UserError:
    return UserError(
        f"this cluster does not know {plural(resource.kind)}", hint="is it a garden? Choose it by --context"
    )


class Reader:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.unread: list[str] = []
        """Descriptions of objects that the user may not read."""

    async def demand(self, resource: Resource, own: Key) -> Object:
        """Read an object. Raises UserError: there is no such object, or no such kind."""
        try:
            found = await self._client.find(resource, own)
            return found or await self._missing(resource, own)
        except KindNotServed:
            raise unknown_kind(resource) from None

    async def _missing(self, resource: Resource, own: Key) -> Object:
        known = await self._client.list(resource, Selection(namespace=own.namespace), form=Form.METADATA)
        where = f"{own.namespace}/" if own.namespace else ""
        remedy = f"see all of them: kubectl get {resource.plural}{' -A' if own.namespace else ''}"
        raise not_found(resource.kind, own.name, [key(obj).name for obj in known], where=where, remedy=remedy)

    async def look(self, resource: Resource, own: Key) -> tuple[Object | None, bool]:
        """The object, if it exists; and whether its existence is known."""
        try:
            return await self._client.find(resource, own), True
        except Forbidden:
            self.unread.append(f"{resource.kind} {own}")
        except KindNotServed:
            return None, await self._is_gone(resource)
        return None, False

    async def find(self, resource: Resource, own: Key) -> Object | None:
        return (await self.look(resource, own))[0]

    async def glance(self, resource: Resource, own: Key) -> Object | None:
        """Object, if it exists and may be read; missing rights are ignored, since another source has the same
        information.
        """
        try:
            return await self._client.find(resource, own)
        except (Forbidden, KindNotServed):
            return None

    async def those(self, resource: Resource, which: Callable[[Object], bool], *, namespace: str = "") -> list[Object]:
        """Objects of a kind that match a predicate, page by page: there may be thousands of others."""
        found: list[Object] = []
        try:
            async for page in self._client.pages(resource, Selection(namespace=namespace)):
                found += filter(which, page)
        except Forbidden:
            where = f"in namespace {namespace}" if namespace else "of all namespaces" if resource.namespaced else ""
            self.unread.append(f"{plural(resource.kind)} {where}".rstrip())
        except KindNotServed:
            await self._is_gone(resource)
        return found

    async def _is_gone(self, resource: Resource) -> bool:
        """Whether there are no objects of a kind that is not served."""
        try:
            await require_gone(self._client, resource.api_version, resource.kind)
        except (Forbidden, KindUnavailable):
            self.unread.append(f"{plural(resource.kind)}, which are not served")
            return False
        return True
