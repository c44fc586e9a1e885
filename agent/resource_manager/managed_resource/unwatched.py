"""ManagedResources in namespaces that are not watched, listed before something is removed.

Agents that share the work by namespaces do not see each other's ManagedResources, and an object that one of them drops
may just be moving to another's. So these are listed, and those that their agents are not done with are kept until the
next look, with the versions of their Secrets. The others have claimed already what they want; see `ownership`.

A look is two lists of all namespaces, beside the passes. One serves all removals that wait for it, which is not for
long, and is followed by a pause in proportion to how long it took. Where ManagedResources may not be listed in all
namespaces, there is none.
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
"""Times as long as the look before."""
_GOOD_FOR = 1.0
"""Seconds until somebody who was about to do something may have changed that."""
_FORBIDDEN_SECONDS = 600.0
"""Until it is tried again."""
_FRESH_SECONDS = 120.0
"""From the change of a Secret for which its agent may not have read it: by then what it wants is not waited for."""


class Unwatched:
    """Args: is_watched: whether the ManagedResources of a namespace are known by a watch."""

    def __init__(self, client: Client, *, is_watched: Callable[[str], bool]) -> None:
        self._client = client
        self._is_watched = is_watched
        self._turns = asyncio.Lock()
        self._looked_at = float("-inf")
        self._forbidden_until = float("-inf")
        self._next_look = float("-inf")
        """There is none before; monotonic, as all times here."""
        self.managed_resources: list[Object] = []
        """Those that their agents are not done with, as of the last look: no more than is needed to plan them."""
        self.secrets: dict[Key, Object] = {}
        """That they name; only uid and version."""
        self.fresh_secrets: set[Key] = set()
        """Those that were written just now: what was written into their ManagedResources since may be health."""

    @property
    def may_be_listed(self) -> bool:
        return time.monotonic() >= self._forbidden_until

    @property
    def known_until(self) -> float:
        """Up to when all is known that can be; what may not be listed is not waited for."""
        return self._looked_at if self.may_be_listed else time.monotonic()

    async def look(self, *, since: float, is_at_work: Callable[[Object], bool], resource_class: str) -> None:
        """Look, unless that was done since then, or too short a time ago.

        Args:
            since: monotonic.
            is_at_work: of a ManagedResource: whether its agent is not done with it; may ask for its Secrets here.
            resource_class: that of agents with which this one shares the work.

        Raises:
            KubeError: it is not known what there is.
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
        with contextlib.suppress(Forbidden):  # then only what they have pending is known
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
        """Of the namespaces that are not watched, page by page: together they may be large."""
        async for page in self._client.pages(resource, Selection(), form=form, managed_fields=resource is SECRETS):
            for each in page:
                if not self._is_watched(key(each).namespace):
                    yield each


def _managed_resource(obj: Object) -> Object:
    """No more of it than shows what its agent is about to do."""
    status = mapping(obj.get("status"))
    known = {name: value for name, value in status.items() if name in {PENDING, "observedGeneration"}}
    applied = condition(obj, RESOURCES_APPLIED)
    known["conditions"] = [{name: applied.get(name) for name in ("type", "reason", "message")}] if applied else []
    meta = {name: value for name, value in metadata(obj).items() if name != "managedFields"}
    return {"metadata": meta, "spec": spec(obj), "status": known}


def _written_at(secret: Object) -> str:
    """As the API server has recorded it."""
    meta = metadata(secret)
    times = [entry.get("time") or "" for entry in meta.get("managedFields") or []]
    return max(times, default="") or meta.get("creationTimestamp") or ""


def _secrets_of(managed_resource: Object) -> list[Key]:
    namespace = key(managed_resource).namespace
    return [Key(namespace, name) for name in secret_names(managed_resource)]
