"""One object of a ManagedResource, in its current state in the cluster, with its Events and pods.

It is read when its page is opened: three calls at most, for few readers at once, with a limited number of entries each.
If a part cannot be read, the reason is shown instead.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import orjson
import yaml

from agent.resource_manager.status_page.lister import Lister
from agent.resource_manager.status_page.rendering import render
from gardener.managed_resource.changes import MISSING, changes
from gardener.managed_resource.ignored_fields import IgnoredFields, with_live_fields
from gardener.managed_resource.references import key_of_reference, listed_in
from gardener.overview.events import count, in_order, last_seen
from gardener.overview.objects import HealthStatus, health_status, short_name
from kube.errors import KubeError
from kube.objects import Key, Object, group_of, key, label_selector_text, metadata, uid
from kube.resources import EVENTS, PODS, Resource
from kube.runtime.client import Client, Selection
from kube.runtime.discovery import Discovery
from kube.yaml import Dumper

# --- reading


_SHOWN = 50
"""Maximum number of Events and pods."""
_AT_ONCE = 2
_SECONDS = 15.0
_SELECTING_PODS = frozenset({"apps", "batch", "policy"})
"""API groups whose kinds have a selector of pods in the same place."""


@dataclass(frozen=True, slots=True)
class Listed:
    items: Sequence[Object] = ()
    problem: str = ""
    """Reason why there are none here."""
    is_cut: bool = False
    """Whether there are more."""


@dataclass(frozen=True, slots=True)
class LiveObject:
    object: Object | None
    problem: str = ""
    """Reason why there is none here."""
    events: Listed | None = None
    pods: Listed | None = None
    """None if its kind has none."""


class LiveReader:
    def __init__(self, client: Client, discovery: Discovery) -> None:
        self._client = client
        self._discovery = discovery
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def read(self, reference: Object) -> LiveObject:
        """Read the object; failures are part of the result.

        Args: reference: apiVersion, kind, namespace, name.
        """
        try:
            async with asyncio.timeout(_SECONDS), self._turn:
                return await self._read(reference)
        except KubeError as error:
            return LiveObject(None, f"It can't be read: {error}")
        except TimeoutError:
            return LiveObject(None, f"The API server did not respond within {_SECONDS:.0f} s.")

    async def _read(self, reference: Object) -> LiveObject:
        resource = await self._discovery.find(reference.get("apiVersion") or "", reference.get("kind") or "")
        namespace = (reference.get("namespace") or "") if resource.namespaced else ""
        obj = await self._client.find(resource, Key(namespace, reference.get("name") or ""))
        if obj is None:
            return LiveObject(None, "It does not exist.")
        # Events about cluster-scoped objects are in `default`.
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
    """Return the label selector of its pods; empty if it has none, or one with expressions."""
    selector = (obj.get("spec") or {}).get("selector")
    if group_of(obj.get("apiVersion") or "") not in _SELECTING_PODS or not isinstance(selector, dict):
        return ""
    return "" if selector.get("matchExpressions") else label_selector_text(selector.get("matchLabels") or {})


# --- the page


_TOO_DEEP = "# It nests too deeply; see kubectl get -o yaml."
_LONGEST = 128 << 10
"""Maximum size of a shown object, in bytes of JSON."""
_FIELDS = 50
_EMPTY: tuple[Any, ...] = (None, {}, [])
"""Values that the API server may not store."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class EventRow(NamedTuple):
    at: str
    times: int
    kind: str
    reason: str
    message: str


class FieldRow(NamedTuple):
    path: str
    live: str
    manifest: str


class PodRow(NamedTuple):
    name: str
    status: HealthStatus
    phase: str
    node: str
    restarts: int
    created: str


def find_reference(managed_resource: Object, object_key: str) -> Object | None:
    """Return the reference of a listed object; other objects have no page."""
    return next((found for found in listed_in(managed_resource) if key_of_reference(found) == object_key), None)


async def object_page(
    lister: Lister, managed_resource: Object, reference: Object, live: LiveObject, *, shows_values: bool, now: datetime
) -> str:
    obj = live.object
    events = reversed(in_order(live.events.items)) if live.events else ()
    manifest = lister.manifest_of(managed_resource, reference)
    if obj and manifest:
        manifest = with_live_fields(manifest, obj, IgnoredFields.of(managed_resource).pointers(reference))
    return render(
        "object.html",
        lister,
        now=now,
        title=short_name(reference),
        owner=key(managed_resource),
        reference=reference,
        live=live,
        # Same as in the list, if known there.
        status=lister.health_of(managed_resource, reference) or (health_status(obj) if obj else None),
        events=[_event_row(event) for event in events],
        pods=[_pod_row(pod) for pod in live.pods.items] if live.pods else (),
        differences=_differences(obj, manifest) if obj and manifest else None,
        yaml=await asyncio.to_thread(as_yaml, obj) if obj and shows_values else "",
        shows_values=shows_values,
    )


def _differences(obj: Object, manifest: Object) -> Sequence[FieldRow]:
    """Return the first fields of the manifest with a different live value; other live fields are no difference."""
    found = (change for change in changes(obj, manifest) if change.after is not MISSING and change.after not in _EMPTY)
    return [FieldRow(c.path, _text(c.before), _text(c.after)) for c in islice(found, _FIELDS)]


def _text(value: Any) -> str:
    if value is MISSING:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _event_row(event: Object) -> EventRow:
    texts = (str(event.get(field) or "") for field in ("type", "reason", "message"))
    return EventRow(last_seen(event), count(event), *texts)


def _pod_row(pod: Object) -> PodRow:
    status, meta = pod.get("status") or {}, metadata(pod)
    restarts = sum(found.get("restartCount") or 0 for found in status.get("containerStatuses") or [])
    return PodRow(
        name=meta.get("name") or "",
        status=health_status(pod),
        phase=status.get("phase") or "",
        node=(pod.get("spec") or {}).get("nodeName") or "",
        restarts=restarts,
        created=meta.get("creationTimestamp") or "",
    )


def as_yaml(obj: Object) -> str:
    """Return the object without parts that are noise to users; for a Secret or a large object, a comment about that."""
    if obj.get("kind") == "Secret":
        return "# Secrets are not shown."
    try:
        if len(orjson.dumps(obj)) > _LONGEST:
            return f"# More than {_LONGEST >> 10} KiB; see kubectl get -o yaml."
    except TypeError:
        return _TOO_DEEP
    meta = {name: value for name, value in metadata(obj).items() if name != "managedFields"}
    if _LAST_APPLIED in (meta.get("annotations") or {}):
        meta["annotations"] = {name: value for name, value in meta["annotations"].items() if name != _LAST_APPLIED}
    try:
        text: str = yaml.dump({**obj, "metadata": meta}, Dumper=Dumper, sort_keys=False, width=1000, allow_unicode=True)
    except RecursionError:
        return _TOO_DEEP
    return text
