"""What is in a garden, kept by watches: hundreds of scenarios look at it again and again."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass

from conformance.scenario_data import Ref
from kube.objects import Key, Object, labels
from kube.resources import EVENTS
from kube.runtime.cache import Caches, Store, View, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery

_ABOUT = "about"


@dataclass(frozen=True, slots=True)
class Mirror:
    stores: Mapping[tuple[str, str], Store[Object]]
    """By API version and kind."""
    events_store: Store[Object]

    def get(self, ref: Ref) -> Object | None:
        store = self.stores[ref.api_version, ref.kind]
        found = store.get(Key(ref.namespace if store.view.resource.namespaced else "", ref.name))
        return None if found is None else {**found, "apiVersion": ref.api_version, "kind": ref.kind}

    def listed(self, api_version: str, kind: str, namespace: str, selector: str) -> list[Object]:
        """Args: namespace: empty: all. selector: one label, `name=value`, or empty."""
        name, _, value = selector.partition("=")
        return [
            {**found, "apiVersion": api_version, "kind": kind}
            for key, found in self.stores[api_version, kind].items()
            if namespace in {"", key.namespace} and (not selector or labels(found).get(name) == value)
        ]

    def events(self, ref: Ref) -> list[Object]:
        namespaced = self.stores[ref.api_version, ref.kind].view.resource.namespaced
        about = (ref.namespace if namespaced else "default", ref.kind, ref.name)
        return [event for _, event in self.events_store.by_index(_ABOUT, about)]


@contextlib.asynccontextmanager
async def mirror(client: Client, kinds: Iterable[tuple[str, str]]) -> AsyncIterator[Mirror]:
    """Args: kinds: API versions and kinds."""
    discovery, caches = Discovery(client), Caches(client)
    try:
        events = caches.acquire(View(EVENTS, without_managed_fields, indexes=((_ABOUT, _about),)))
        stores = {
            kind: caches.acquire(View(await discovery.find(*kind), without_managed_fields)) for kind in set(kinds)
        }
        for store in (events, *stores.values()):
            await store.synced.wait()
        yield Mirror(stores, events)
    finally:
        await caches.close()


def _about(event: Object) -> list[tuple[str, str, str]]:
    about = event.get("involvedObject") or {}
    return [(event["metadata"]["namespace"], about.get("kind", ""), about.get("name", ""))]
