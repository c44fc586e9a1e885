"""Cluster objects for handlers: listers of small projections, kept current by watches.

A handler creates its listers with itself, so that only the kinds of enabled webhooks are watched. Each handler
interprets its objects; only namespaces are shared by several.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from gardener.keys import GROUP
from kube.errors import KubeError, NotFound, Unreachable
from kube.objects import Key, Object, annotations, labels
from kube.resources import NAMESPACES, Resource
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Form
from kube.runtime.presence import present
from process.clusters import Cluster

T = TypeVar("T")

_LISTED_SECONDS = 2.0
_OPTIONAL_SECONDS = 10.0


class NotCovered(KubeError):
    """The configuration excludes a requested namespace from the caches."""

    def __init__(self, namespace: str) -> None:
        super().__init__(
            f'namespace "{namespace}" is not watched; add it to targetClientConnection.namespaces, or exclude it in '
            "the webhook configuration"
        )


class Namespace(NamedTuple):
    labels: dict[str, str]
    annotations: dict[str, str]
    """Annotations of our group only; see `gardener.keys`."""


def _namespace(obj: Object) -> Namespace:
    kept = {name: value for name, value in annotations(obj).items() if f"{GROUP}/" in name}
    return Namespace(labels(obj), kept)


NAMESPACES_VIEW = View(NAMESPACES, _namespace, form=Form.METADATA)


class Lister(Generic[T]):
    """Objects of a view, in `store` as soon as the state has started."""

    __slots__ = ("_handlers", "needed", "started", "store", "view")

    store: Store[T]

    def __init__(self, view: View[T], *, needed: bool) -> None:
        self.view = view
        self.needed = needed
        self.started = False
        self._handlers: list[Callable[[Change[T]], None]] = []

    def start(self, caches: Caches) -> None:
        self.store = caches.acquire(self.view, needed_at_start=self.needed)
        self.started = True
        for handler in self._handlers:
            self.store.subscribe(handler)

    def subscribe(self, handler: Callable[[Change[T]], None]) -> None:
        """Call the handler for all known objects, then for each change."""
        self._handlers.append(handler)
        if self.started:
            self.store.subscribe(handler)


class SharedListers:
    """Clusters, and the watched objects of the target."""

    def __init__(self, source: Cluster, target: Cluster) -> None:
        self.source = source
        self.target = target
        self._listers: dict[View[Any], Lister[Any]] = {}
        self._namespaces: Lister[Namespace] | None = None
        self._started = False

    def lister(self, view: View[T], *, needed: bool = True) -> Lister[T]:
        """Return the lister of a view, shared by all its users.

        A view that is not `needed` may not exist or not be readable, and delays the start only for a moment.
        """
        found = self._listers.get(view)
        if found is None:
            found = self._listers[view] = Lister(view, needed=needed)
            if self._started:
                found.start(self.target.caches)
        return found

    async def start(self) -> None:
        """Start the watches, and wait a short time for those that are not needed."""
        self._started = True
        for lister in list(self._listers.values()):
            lister.start(self.target.caches)
        for lister in list(self._listers.values()):
            if not lister.needed:
                await self.target.caches.tried(lister.view, timeout=_OPTIONAL_SECONDS)

    async def close(self) -> None:
        listers, self._listers, self._namespaces = self._listers, {}, None
        if self._started:
            for view in listers:
                await self.target.caches.release(view)

    def demand_covered(self, resource: Resource, namespace: str) -> None:
        """Require that the caches contain a namespace.

        Raises:
            NotCovered: they do not.
        """
        if not self.target.caches.covers(resource, namespace):
            raise NotCovered(namespace)

    # --- namespaces

    async def namespace(self, name: str) -> Namespace:
        """Return a namespace, read if the watch has not observed it yet: workloads follow their namespace at once.

        Raises:
            NotFound: there is none.
        """
        found = await present(self.target.client, self._namespace_store(), Key("", name))
        if found is None:
            raise not_found(NAMESPACES, name)
        return found

    async def labels_of_namespace(self, name: str) -> dict[str, str]:
        """Return the labels of a namespace. The watch starts with the first call: few API servers use the combined
        webhook.

        Raises:
            NotFound: there is no such namespace.
            Unreachable: the API server does not list the namespaces.
        """
        synced = self._namespace_store().synced
        if not synced.is_set():
            try:
                async with asyncio.timeout(_LISTED_SECONDS):
                    await synced.wait()
            except TimeoutError:
                raise Unreachable("the namespaces are not known yet") from None
        return (await self.namespace(name)).labels

    def _namespace_store(self) -> Store[Namespace]:
        if self._namespaces is None:
            self._namespaces = self.lister(NAMESPACES_VIEW, needed=False)
        return self._namespaces.store


def not_found(resource: Resource, name: str) -> NotFound:
    details = {"name": name, "kind": resource.plural}
    return NotFound(404, message=f'{resource.plural} "{name}" not found', reason="NotFound", details=details)
