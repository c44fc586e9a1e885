"""crd-deletion-protection: essential objects of a landscape are deleted only after confirmation.

A request without a name deletes a whole collection: the API server sends one request for every object of it, without
naming it. So all objects of the collection are listed, and one without confirmation keeps them all. The result that all
are confirmed is cached for a second, so that n objects do not cost n lists; an unconfirmed object is always looked up
again: a user who has just confirmed it must not be refused.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import msgspec

from config.resource_manager.webhooks import CRDDeletionProtection
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.api.extensions import ALL_EXTENSIONS, BASTIONS
from kube.errors import KindNotServed, KubeError
from kube.objects import Key, is_truthy
from kube.resources import Resource
from kube.runtime.client import Client, Form, Selection
from kube.runtime.kind_definitions import require_gone
from webhooks.admission import Allowed, Answer, Denied, Errored, Handler, Request, ResourceName
from webhooks.descriptor import Entry, HandlerWebhook
from webhooks.rules.registration import Rule, having

_CRD_GROUP = "apiextensions.k8s.io"
_DELETE = ("DELETE",)
_DEFINITIONS = Rule(_DELETE, _CRD_GROUP, ("v1beta1", "v1"), ("customresourcedefinitions",))
_RESOURCES = (
    Rule(_DELETE, ETCDS.group, (ETCDS.version,), (ETCDS.plural,)),
    Rule(_DELETE, BASTIONS.group, (BASTIONS.version,), tuple(kind.plural for kind in ALL_EXTENSIONS)),
)
_BASTIONS = ResourceName(BASTIONS.group, BASTIONS.version, BASTIONS.plural)
_PROTECTED = frozenset(
    ResourceName(group, version, plural)
    for rule in (_DEFINITIONS, *_RESOURCES)
    for group, version, plural in product([rule.group], rule.versions, rule.resources)
) - {_BASTIONS}
_DEADLINE_SECONDS = 10.0
_BELIEVED_SECONDS = 1.0
_PAGE_SIZE = 500
_MOST_COLLECTIONS = 256


def handler(settings: CRDDeletionProtection, client: Client) -> Handler:
    """Return the handler; `client` is that of the source cluster."""
    protected = _PROTECTED | {_BASTIONS} if settings.protect_bastions else _PROTECTED
    collections = Collections(client)

    async def handle(request: Request) -> Answer:
        if request.operation != "DELETE":
            return Allowed("operation is not DELETE")
        if request.resource not in protected:
            return Allowed("resource is not deletion-protected")
        obj = request.old_object if request.old_object is not None else request.object
        if request.name and obj is None:
            return Errored(400, "no object found in admission request")
        try:
            if request.name:
                unconfirmed = _first_unconfirmed([obj])
            else:
                async with asyncio.timeout(_DEADLINE_SECONDS):
                    unconfirmed = await collections.unconfirmed(request)
        except TimeoutError:
            return Errored(500, f"the objects could not be listed within {_DEADLINE_SECONDS:.0f} seconds")
        except msgspec.ValidationError as error:
            return Errored(400 if request.name else 500, str(error))
        except KubeError as error:
            return Errored(500, str(error))
        if unconfirmed is None:
            return Allowed()
        return Denied(f'must have a "{keys.CONFIRM_DELETION}" annotation to delete: {request.kind.kind} {unconfirmed}')

    return handle


class _Metadata(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None
    annotations: dict[str, str | None] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata | None = None


def _first_unconfirmed(objects: list[Any]) -> Key | None:
    """Return the first object without confirmation.

    Raises:
        msgspec.ValidationError: an object has invalid metadata.
    """
    for obj in msgspec.convert(objects, list[_Object]):
        meta = obj.metadata or _Metadata()
        if not is_truthy((meta.annotations or {}).get(keys.CONFIRM_DELETION)):
            return Key(meta.namespace or "", meta.name or "")
    return None


@dataclass(slots=True)
class _Collection:
    confirmed_at: float = float("-inf")
    """Start of the list that found all objects confirmed."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Collections:
    def __init__(
        self, client: Client, *, page_size: int = _PAGE_SIZE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._page_size = page_size
        self._clock = clock
        self._collections: dict[tuple[ResourceName, str], _Collection] = {}

    async def unconfirmed(self, request: Request) -> Key | None:
        """Return the first object without confirmation.

        Raises:
            msgspec.ValidationError: its answer does not consist of objects.
        """
        key = (request.resource, request.namespace)
        if key not in self._collections and len(self._collections) >= _MOST_COLLECTIONS:
            self._collections.clear()
        collection = self._collections.setdefault(key, _Collection())
        async with collection.lock:
            now = self._clock()
            if now - collection.confirmed_at < _BELIEVED_SECONDS:
                return None
            found = await self._list(request)
            collection.confirmed_at = now if found is None else float("-inf")
            return found

    async def _list(self, request: Request) -> Key | None:
        group, version, plural = request.resource
        is_crd = group == _CRD_GROUP
        resource = Resource(group, version, request.kind.kind, plural, namespaced=not is_crd)
        selection = Selection("", f"{keys.DELETION_PROTECTED}=true") if is_crd else Selection(request.namespace)
        try:
            async for page in self._client.pages(resource, selection, form=Form.METADATA, limit=self._page_size):
                if (found := _first_unconfirmed(page)) is not None:
                    return found
        except KindNotServed:
            await require_gone(self._client, resource.api_version, resource.kind)
        return None


WEBHOOK = HandlerWebhook(
    name="crd-deletion-protection",
    path="/webhooks/validate-crd-deletion",
    settings=CRDDeletionProtection,
    handler=lambda settings, state: handler(settings, state.source.client),
    validating=True,
    entries=(
        Entry(rules=(_DEFINITIONS,), objects=having(keys.DELETION_PROTECTED, "true")),
        Entry(name="cr-deletion-protection", rules=_RESOURCES),
    ),
)
