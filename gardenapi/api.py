"""The interface, its two implementations, and how to find out which of them an API server needs."""

import base64
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import ClassVar

import orjson

from gardener import keys
from gardener.api.garden import AUTHENTICATION_API, SHOOTS, WORKLOAD_IDENTITIES
from kube.clock import parse_time
from kube.errors import KindNotServed, NotUnderstood
from kube.objects import Key, Object, integer, is_deleting, key, mapping, metadata, spec, text
from kube.paths import at
from kube.resources import Resource
from kube.runtime import discovery_documents
from kube.runtime.client import Client

_BINDING = f"{SHOOTS.plural}/binding"


class Role(Enum):
    """What a kubeconfig permits in the Shoot: the subresource that makes it, and its group there."""

    ADMIN = ("adminkubeconfig", "system:masters")
    VIEWER = ("viewerkubeconfig", "gardener.cloud:system:viewers")

    @property
    def subresource(self) -> str:
        return self.value[0]

    @property
    def group(self) -> str:
        return self.value[1]

    @property
    def request_kind(self) -> str:
        return f"{self.name.title()}KubeconfigRequest"


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    content: bytes
    expires: datetime

    def __repr__(self) -> str:
        return f"Kubeconfig(expires={self.expires.isoformat()})"


@dataclass(frozen=True, slots=True)
class Token:
    text: str = field(repr=False)
    lifetime: timedelta
    """From when it was issued."""


class GardenApi(ABC):
    """All methods raise KubeError if the API server refuses, or can't be asked."""

    has_own_fields: ClassVar[bool]
    """Whether it stores what only our definitions have, such as the phase of a Seed."""
    _issued_below: ClassVar[str] = ""
    """Where tokens and kubeconfigs are issued, if not below the objects that they are for."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def operate(
        self, resource: Resource, name: str, operation: str, *, namespace: str = "", version: str = ""
    ) -> Object:
        """Asks whoever handles the object for an operation, such as `reconcile`; the object as it is then.

        Args: version: the resourceVersion that it must still have; empty: any.
        """
        meta: Object = {"annotations": {keys.OPERATION: operation}}
        patch = {"metadata": meta | ({"resourceVersion": version} if version else {})}
        return await self._client.patch(resource, Key(namespace, name), patch)

    def needs_work(self, obj: Object) -> bool:
        """Whether something has been asked for that has not been begun."""
        return integer(at(obj, "status", "observedGeneration")) != integer(metadata(obj).get("generation"))

    @abstractmethod
    def is_due(self, shoot: Object) -> bool:
        """Whether the work is to be done at once; if not, it waits for the maintenance window."""

    @abstractmethod
    async def bind(self, shoot: Object, seed: str) -> Object:
        """Sets `spec.seedName`; the Shoot as it is then. Raises Conflict: the Shoot has been changed meanwhile."""

    @abstractmethod
    async def migrated(self, shoot: Object) -> None:
        """To be called when the status says that a Shoot has left its Seed: the next one has to take it over."""

    async def kubeconfig(self, shoot: Object, role: Role, *, lifetime: timedelta) -> Kubeconfig:
        """Credentials for the Shoot's API server, for whoever the client belongs to. Raises KubeError."""
        where = key(shoot)
        path = self._issued(SHOOTS, where, role.subresource)
        body = {
            "apiVersion": AUTHENTICATION_API,
            "kind": role.request_kind,
            "spec": {"expirationSeconds": int(lifetime.total_seconds())},
        }
        answer = mapping(orjson.loads(await self._client.request("POST", path, body=body)))
        status = mapping(answer.get("status"))
        expires = parse_time(text(status.get("expirationTimestamp")))
        return Kubeconfig(base64.b64decode(text(status.get("kubeconfig"))), expires)

    async def token(self, identity: Key, *, lifetime: timedelta, now: datetime, context: Object | None = None) -> Token:
        """A token of a WorkloadIdentity. It may live longer or shorter than asked for.

        Args:
            identity: the WorkloadIdentity.
            lifetime: as asked for.
            now: the time of the garden, for an answer that does not name it.
            context: the object that it is used for: kind, apiVersion, namespace, name, uid.
        """
        wanted: Object = {"expirationSeconds": int(lifetime.total_seconds())}
        if context is not None:
            wanted["contextObject"] = context
        path = self._issued(WORKLOAD_IDENTITIES, identity, "token")
        body = {"apiVersion": WORKLOAD_IDENTITIES.api_version, "kind": "TokenRequest", "spec": wanted}
        return _token(await self._client.request("POST", path, body=body), now=now)

    def _issued(self, resource: Resource, where: Key, subresource: str) -> str:
        """The path at which something is issued for an object."""
        path = resource.path(namespace=where.namespace, name=where.name, subresource=subresource)
        if self._issued_below:
            return f"{self._issued_below}{path.removeprefix(f'/apis/{resource.api_version}')}"
        return path


class AggregatedApi(GardenApi):
    """The original's API server."""

    has_own_fields = False

    def is_due(self, shoot: Object) -> bool:
        # It does not raise the generation for what waits.
        return self.needs_work(shoot)

    async def bind(self, shoot: Object, seed: str) -> Object:
        bound = {**shoot, "spec": {**spec(shoot), "seedName": seed}}
        return await self._client.replace(SHOOTS, bound, subresource="binding")

    async def migrated(self, shoot: Object) -> None:
        """The status write itself has raised the generation."""


class PlainApi(GardenApi):
    """Any API server with our definitions and webhooks."""

    has_own_fields = True
    _issued_below = f"/apis/{AUTHENTICATION_API}"

    def is_due(self, shoot: Object) -> bool:
        if not self.needs_work(shoot):
            return False
        is_confined = at(spec(shoot), "maintenance", "confineSpecUpdateRollout") is True
        asked = integer(at(shoot, "operation", "sequence"))
        return (
            not is_confined or is_deleting(shoot) or asked != integer(at(shoot, "status", "observedOperationSequence"))
        )

    async def bind(self, shoot: Object, seed: str) -> Object:
        where, version = key(shoot), metadata(shoot).get("resourceVersion")
        patch: Object = {"metadata": {"resourceVersion": version}, "spec": {"seedName": seed}}
        return await self._client.patch(SHOOTS, where, patch)

    async def migrated(self, shoot: Object) -> None:
        """A status write can't raise the generation here."""
        where = key(shoot)
        await self.operate(SHOOTS, where.name, keys.OPERATION_RECONCILE, namespace=where.namespace)


def _token(answer: bytes, *, now: datetime) -> Token:
    try:
        request = orjson.loads(answer)
        status, created = request["status"], metadata(request).get("creationTimestamp")
        issued, expires = parse_time(created) if created else now, parse_time(status["expirationTimestamp"])
        if not isinstance(status["token"], str) or not status["token"]:
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError):
        raise NotUnderstood("the answer to the TokenRequest holds no token") from None
    return Token(status["token"], expires - issued)


async def recognized(client: Client) -> GardenApi:
    """The API of the garden that the client talks to. Raises KubeError: it can't be asked, or serves no garden."""
    names = await discovery_documents.names(client.read, SHOOTS.api_version)
    if SHOOTS.plural not in names:
        raise KindNotServed(SHOOTS.api_version, SHOOTS.kind)
    return AggregatedApi(client) if _BINDING in names else PlainApi(client)
