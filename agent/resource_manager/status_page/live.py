"""One object as it is now, with its Events and pods: what only the API server knows.

It is read when somebody opens the page of the object: three calls at most, for few readers at once, and some entries of
each. Why something can't be read stands in its place.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from kube.errors import KubeError
from kube.objects import Object, group_of, label_selector_text, metadata, uid
from kube.resources import EVENTS, PODS, Resource
from kube.runtime.client import Client, Selection
from kube.runtime.discovery import Discovery

_SHOWN = 50
"""Events and pods."""
_AT_ONCE = 2
_SECONDS = 15.0
_SELECTING_PODS = frozenset({"apps", "batch", "policy"})
"""API groups whose kinds have a selector of pods in the same place."""


@dataclass(frozen=True, slots=True)
class Listed:
    items: Sequence[Object] = ()
    problem: str = ""
    """Why there are none here."""
    is_cut: bool = False
    """Whether there are more."""


@dataclass(frozen=True, slots=True)
class LiveObject:
    object: Object | None
    problem: str = ""
    """Why there is none here."""
    events: Listed | None = None
    pods: Listed | None = None
    """None: its kind has none."""


class LiveReader:
    def __init__(self, client: Client, discovery: Discovery) -> None:
        self._client = client
        self._discovery = discovery
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def read(self, reference: Object) -> LiveObject:
        """Args: reference: apiVersion, kind, namespace, name. Whatever goes wrong is in the answer."""
        try:
            async with asyncio.timeout(_SECONDS), self._turn:
                return await self._read(reference)
        except KubeError as error:
            return LiveObject(None, f"It can't be read: {error}")
        except TimeoutError:
            return LiveObject(None, f"The API server did not answer within {_SECONDS:.0f} s.")

    async def _read(self, reference: Object) -> LiveObject:
        resource = await self._discovery.find(reference.get("apiVersion") or "", reference.get("kind") or "")
        namespace = (reference.get("namespace") or "") if resource.namespaced else ""
        obj = await self._client.find(resource, reference.get("name") or "", namespace=namespace)
        if obj is None:
            return LiveObject(None, "It does not exist.")
        # Events about objects of no namespace are in `default`.
        about = Selection(namespace or "default", field_selector=f"involvedObject.uid={uid(obj)}")
        events = await self._listed(EVENTS, about)
        selected = _selected_pods(obj)
        pods = await self._listed(PODS, Selection(namespace, selected)) if selected else None
        return LiveObject(obj, events=events, pods=pods)

    async def _listed(self, resource: Resource, selection: Selection) -> Listed:
        try:
            page = await self._client.list_page(resource, selection, limit=_SHOWN)
        except KubeError as error:
            return Listed(problem=f"They can't be read: {error}")
        return Listed(page["items"], is_cut=bool(metadata(page).get("continue")))


def _selected_pods(obj: Object) -> str:
    """The label selector of its pods; empty: it has none, or one that says more than labels do."""
    selector = (obj.get("spec") or {}).get("selector")
    if group_of(obj.get("apiVersion") or "") not in _SELECTING_PODS or not isinstance(selector, dict):
        return ""
    return "" if selector.get("matchExpressions") else label_selector_text(selector.get("matchLabels") or {})
