"""ManagedResources in namespaces that are not watched, listed before a removal.

Agents that share the work by namespaces do not see each other's ManagedResources, and an object that one of them drops
may just be moving to another's. So these are listed, and the unfinished ones are kept until the next list, with the
versions of their Secrets. The others have already claimed all that they want; see `ownership`.

Two lists of all namespaces are made, independent of the passes. They serve all removals that wait for them, which is
not for long, and are followed by a pause in proportion to their duration. There are none if ManagedResources may not be
listed in all namespaces.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_APPLIED
from gardener.managed_resource.inventory import PENDING
from gardener.managed_resource.references import secret_names
from gardener.responsibility import is_responsible
from kube.clock import format_time
from kube.errors import Forbidden
from kube.objects import Key, Object, condition, key, mapping, metadata, spec
from kube.resources import SECRETS, Resource
from kube.runtime.client import Client, Form, Selection

_PAUSE = 5
"""Pause as a multiple of the duration of the previous lists."""
_GOOD_FOR = 1.0
"""Seconds until an unfinished ManagedResource may have changed."""
_FORBIDDEN_SECONDS = 600.0
"""Seconds until a forbidden list is tried again."""
_FRESH_SECONDS = 120.0
"""Seconds after the change of a Secret in which its agent may not have read it; later, removals do not wait for it."""


class Unwatched:
    """Args: is_watched: whether the ManagedResources of a namespace are known by a watch."""

    def __init__(self, client: Client, *, is_watched: Callable[[str], bool]) -> None:
        self._client = client
        self._is_watched = is_watched
        self._turns = asyncio.Lock()
        self._looked_at = float("-inf")
        self._forbidden_until = float("-inf")
        self._next_look = float("-inf")
        """Earliest time of the next list; monotonic, as all times here."""
        self.managed_resources: list[Object] = []
        """Unfinished ones as of the last list, reduced to the parts needed for planning."""
        self.secrets: dict[Key, Object] = {}
        """Secrets that they refer to; only uid and version."""
        self.fresh_secrets: set[Key] = set()
        """Secrets that were just written: later writes to their ManagedResources may only concern health."""

    @property
    def may_be_listed(self) -> bool:
        return time.monotonic() >= self._forbidden_until

    @property
    def known_until(self) -> float:
        """Time up to which all is known that can be; now if lists are forbidden."""
        return self._looked_at if self.may_be_listed else time.monotonic()

    async def look(self, *, since: float, is_at_work: Callable[[Object], bool], resource_class: str) -> None:
        """List, unless that was done since then, or too short a time ago.

        Args:
            since: monotonic.
            is_at_work: whether the agent of a ManagedResource has not finished; may look up its Secrets here.
            resource_class: that of agents with which this one shares the work.

        Raises:
            KubeError: the lists failed.
        """
        async with self._turns:
            now = time.monotonic()
            if now < self._forbidden_until:
                return
            is_good = self._looked_at >= since
            if self.managed_resources:
                is_good = is_good and now - self._looked_at < _GOOD_FOR
            if is_good or now < self._next_look:
                return
            try:
                await self._look(is_at_work, resource_class)
            except Forbidden:
                self._forbidden_until = now + _FORBIDDEN_SECONDS
                self.managed_resources, self.secrets, self.fresh_secrets = [], {}, set()
            else:
                self._next_look = now + (1 + _PAUSE) * (time.monotonic() - now)
            self._looked_at = now

    async def _look(self, is_at_work: Callable[[Object], bool], resource_class: str) -> None:
        found = [
            _managed_resource(each)
            async for each in self._all(MANAGED_RESOURCES, Form.WHOLE)
            if is_responsible(each, resource_class=resource_class)
        ]
        named = {name for each in found for name in _secrets_of(each)}
        self.secrets, self.fresh_secrets = {}, set()
        fresh_from = format_time(datetime.now(UTC) - timedelta(seconds=_FRESH_SECONDS))
        with contextlib.suppress(Forbidden):  # then only their pending objects are known
            async for each in self._all(SECRETS, Form.METADATA):
                if key(each) in named:
                    meta = metadata(each)
                    self.secrets[key(each)] = {
                        "metadata": {field: meta.get(field) for field in ("uid", "resourceVersion")}
                    }
                    if _written_at(each) >= fresh_from:
                        self.fresh_secrets.add(key(each))
        self.managed_resources = [each for each in found if is_at_work(each)]
        named = {name for each in self.managed_resources for name in _secrets_of(each)}
        self.secrets = {name: secret for name, secret in self.secrets.items() if name in named}

    async def _all(self, resource: Resource, form: Form) -> AsyncIterator[Object]:
        """Yield objects in namespaces that are not watched, page by page: together they may be large."""
        async for page in self._client.pages(resource, Selection(), form=form, managed_fields=resource is SECRETS):
            for each in page:
                if not self._is_watched(key(each).namespace):
                    yield each


def _managed_resource(obj: Object) -> Object:
    """Return the parts that show the next actions of its agent."""
    status = mapping(obj.get("status"))
    known = {name: value for name, value in status.items() if name in {PENDING, "observedGeneration"}}
    applied = condition(obj, RESOURCES_APPLIED)
    known["conditions"] = [{name: applied.get(name) for name in ("type", "reason", "message")}] if applied else []
    meta = {name: value for name, value in metadata(obj).items() if name != "managedFields"}
    return {"metadata": meta, "spec": spec(obj), "status": known}


def _written_at(secret: Object) -> str:
    """Return the time of the last write that the API server has recorded."""
    meta = metadata(secret)
    times = [entry.get("time") or "" for entry in meta.get("managedFields") or []]
    return max(times, default="") or meta.get("creationTimestamp") or ""


def _secrets_of(managed_resource: Object) -> list[Key]:
    namespace = key(managed_resource).namespace
    return [Key(namespace, name) for name in secret_names(managed_resource)]
