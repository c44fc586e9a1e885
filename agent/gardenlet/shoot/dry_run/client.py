"""Clients that write nothing; one of them records writes, and reads them back.

    client = RecordingClient(cluster.client, planned=components.find)
    ...
    client.written        # by kind and name, the object before and after

They send the requests of their own client, with the same credentials and limits; a request that would change anything
is refused at the only place that sends requests, unless it is a dry run of the API server.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kube.errors import Conflict, KubeError, NotFound
from kube.objects import Key, Object, key, key_of, metadata
from kube.resources import Resource
from kube.runtime.client import JSON_PATCH, MERGE_PATCH, Client, Form, Selection
from kube.write_mode import CARRIED_OUT, WriteMode

_READS = frozenset({"GET", "HEAD"})
_DRY_RUN = WriteMode(dry_run=True)
_ATTEMPTS = 5


class NotCarriedOutError(KubeError):
    """The request would change something, and its result is not known."""


@dataclass(slots=True)
class Recorded:
    """A recorded write.

    Attributes:
        before, after: None if the object does not exist then.
    """

    before: Object | None
    after: Object | None


def _nothing(_resource: Resource, _name: Key) -> Object | None:
    return None


class ReadingClient(Client):
    """A client that refuses to write."""

    def __init__(self, client: Client) -> None:
        self.__dict__.update(client.__dict__)  # share its state, like clients of another user

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, **options: Any
    ) -> bytes:
        if method not in _READS and (params or {}).get("dryRun") != "All":
            raise NotCarriedOutError(f"{method} {path} is not supported in a preview")
        return await super().request(method, path, params=params, **options)


class RecordingClient(ReadingClient):
    """A client that records writes.

    Args:
        planned: finds objects that another recorder would have created.
    """

    def __init__(self, client: Client, *, planned: Callable[[Resource, Key], Object | None] = _nothing) -> None:
        super().__init__(client)
        self._planned = planned
        self.written: dict[tuple[Resource, Key], Recorded] = {}

    # --- requests that are still sent

    async def live(self, resource: Resource, name: Key) -> Object | None:
        """Return the live object, regardless of recorded writes.

        Raises:
            KubeError: it can't be read.
        """
        try:
            return await super().get(resource, name)
        except NotFound:
            return None

    async def would_be(self, resource: Resource, body: Object) -> Object:
        """Return the result of a replacement, with defaults.

        Raises:
            KubeError: it would be refused.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return await super().replace(resource, body, mode=_DRY_RUN)
            except Conflict:
                # Another client has written its status meanwhile.
                live = await super().get(resource, key(body))
                body = {**body, "metadata": {**metadata(body), "resourceVersion": metadata(live)["resourceVersion"]}}
        return await super().replace(resource, body, mode=_DRY_RUN)

    # --- methods for tasks

    async def get(
        self,
        resource: Resource,
        name: Key | str,
        *,
        form: Form = Form.WHOLE,
        timeout: float | None = None,
    ) -> Object:
        own = key_of(name)
        recorded = self.written.get((resource, own))
        if recorded is None:
            try:
                return await super().get(resource, own, form=form, timeout=timeout)
            except NotFound:
                if (planned := self._planned(resource, own)) is None:
                    raise
                return planned
        if recorded.after is None:
            raise NotFound(404, message=f'{resource.plural} "{own.name}" not found')
        return recorded.after

    async def create(self, resource: Resource, obj: Object, *, mode: WriteMode = CARRIED_OUT, **_: Any) -> Object:
        assert not mode.dry_run
        meta = {**metadata(obj), "uid": "", "resourceVersion": "0", "generation": 1}
        return await self._note(resource, {**resource.type_meta, **obj, "metadata": meta})

    async def replace(
        self, resource: Resource, obj: Object, *, subresource: str = "", mode: WriteMode = CARRIED_OUT, **_: Any
    ) -> Object:
        assert not mode.dry_run
        return obj if subresource else await self._note(resource, obj)

    async def patch(
        self,
        resource: Resource,
        name: Key | str,
        body: Any,
        *,
        subresource: str = "",
        content_type: str = MERGE_PATCH,
        **_: Any,
    ) -> Object:
        if content_type not in _PATCHED:
            raise NotCarriedOutError(f"dry run does not support {content_type} for {resource.kind} {name}")
        live = await self.get(resource, name)
        patched: Object = _PATCHED[content_type](live, body)
        return patched if subresource else await self._note(resource, patched)

    async def delete(self, resource: Resource, name: Key | str, **_: Any) -> None:
        await self.get(resource, name)
        await self._record(resource, key_of(name), None)

    async def delete_collection(self, resource: Resource, selection: Selection) -> None:
        raise NotCarriedOutError(f"dry run does not support deleting all {resource.plural} of {selection}")

    async def _note(self, resource: Resource, obj: Object) -> Object:
        await self._record(resource, key(obj), obj)
        return obj

    async def _record(self, resource: Resource, name: Key, after: Object | None) -> None:
        known = self.written.get((resource, name))
        before = known.before if known is not None else await self.live(resource, name)
        self.written[resource, name] = Recorded(before, copy.deepcopy(after))


def json_patched(obj: Object, patch: list[Object]) -> Object:
    """Apply a JSON patch that adds and removes fields; its tests hold, since nothing else writes recorded objects."""
    result = copy.deepcopy(obj)
    for each in patch:
        *parents, name = [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
        place = result
        for part in parents:
            place = place[part]
        if each["op"] == "remove":
            del place[name]
        elif each["op"] == "add":
            place[name] = each["value"]
    return result


def merge_patched(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), change)
    return result


_PATCHED: Mapping[str, Callable[[Object, Any], Object]] = {MERGE_PATCH: merge_patched, JSON_PATCH: json_patched}
