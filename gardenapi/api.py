"""The interface, its two implementations, and the detection of the right one for an API server."""

import base64
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import ClassVar

import orjson

from gardener import keys
from gardener.api.garden import AUTHENTICATION_API, SHOOTS, WORKLOAD_IDENTITIES
from gardener.garden.shoots import is_confined
from kube.clock import parse_time
from kube.errors import KindNotServed, NotUnderstood
from kube.objects import Key, Object, integer, is_deleting, key, mapping, metadata, spec, text
from kube.paths import at
from kube.resources import Resource
from kube.runtime import discovery_documents
from kube.runtime.client import Client

_BINDING = f"{SHOOTS.plural}/binding"


class Role(Enum):
    """Rights of a kubeconfig in the Shoot: the subresource that creates it, and its group there."""

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
    """Time since it was issued until it expires."""


class GardenApi(ABC):
    """API of a garden. All methods raise KubeError if the API server refuses, or is unreachable."""

    has_own_fields: ClassVar[bool]
    """Whether it stores fields that only our definitions have, such as the phase of a Seed."""
    _issued_below: ClassVar[str] = ""
    """Path prefix of tokens and kubeconfigs; empty if they are issued below their objects."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def operate(self, resource: Resource, name: Key | str, operation: str, *, version: str = "") -> Object:
        """Request an operation on an object, such as `reconcile`; return the result.

        Args: version: resourceVersion that it must still have; empty for any.
        """
        meta: Object = {"annotations": {keys.OPERATION: operation}}
        patch = {"metadata": meta | ({"resourceVersion": version} if version else {})}
        return await self.client.patch(resource, name, patch)

    def needs_work(self, obj: Object) -> bool:
        """Whether requested work has not begun."""
        return integer(at(obj, "status", "observedGeneration")) != integer(metadata(obj).get("generation"))

    @abstractmethod
    def is_due(self, shoot: Object) -> bool:
        """Whether the work is due at once; if not, it waits for the maintenance window."""

    @abstractmethod
    async def bind(self, shoot: Object, seed: str) -> Object:
        """Set `spec.seedName`; return the result.

        Raises:
            Conflict: the Shoot has changed meanwhile.
        """

    @abstractmethod
    async def migrated(self, shoot: Object) -> None:
        """Trigger the takeover by the next Seed, after the status reports that the Shoot has left its Seed."""

    async def kubeconfig(self, shoot: Object, role: Role, *, lifetime: timedelta) -> Kubeconfig:
        """Return credentials for the Shoot's API server, for the user of the client."""
        where = key(shoot)
        path = self._issued(SHOOTS, where, role.subresource)
        body = {
            "apiVersion": AUTHENTICATION_API,
            "kind": role.request_kind,
            "spec": {"expirationSeconds": int(lifetime.total_seconds())},
        }
        answer = mapping(orjson.loads(await self.client.request("POST", path, body=body)))
        status = mapping(answer.get("status"))
        expires = parse_time(text(status.get("expirationTimestamp")))
        return Kubeconfig(base64.b64decode(text(status.get("kubeconfig"))), expires)

    async def token(self, identity: Key, *, lifetime: timedelta, now: datetime, context: Object | None = None) -> Token:
        """Return a token of a WorkloadIdentity. Its lifetime may differ from the requested one.

        Args:
            identity: the WorkloadIdentity.
            lifetime: requested lifetime.
            now: time of the garden, for a response without it.
            context: object that uses the token: kind, apiVersion, namespace, name, uid.
        """
        wanted: Object = {"expirationSeconds": int(lifetime.total_seconds())}
        if context is not None:
            wanted["contextObject"] = context
        path = self._issued(WORKLOAD_IDENTITIES, identity, "token")
        body = {"apiVersion": WORKLOAD_IDENTITIES.api_version, "kind": "TokenRequest", "spec": wanted}
        return _token(await self.client.request("POST", path, body=body), now=now)

    def _issued(self, resource: Resource, where: Key, subresource: str) -> str:
        """Return the path at which credentials for an object are issued."""
        path = resource.path_of(where, subresource)
        if self._issued_below:
            return f"{self._issued_below}{path.removeprefix(f'/apis/{resource.api_version}')}"
        return path


class AggregatedApi(GardenApi):
    """The original's API server."""

    has_own_fields = False

    def is_due(self, shoot: Object) -> bool:
        # It does not raise the generation for waiting work.
        return self.needs_work(shoot)

    async def bind(self, shoot: Object, seed: str) -> Object:
        bound = {**shoot, "spec": {**spec(shoot), "seedName": seed}}
        return await self.client.replace(SHOOTS, bound, subresource="binding")

    async def migrated(self, shoot: Object) -> None:
        """Do nothing: the status write itself has raised the generation."""


class PlainApi(GardenApi):
    """Any API server with our definitions and webhooks."""

    has_own_fields = True
    _issued_below = f"/apis/{AUTHENTICATION_API}"

    def is_due(self, shoot: Object) -> bool:
        if not self.needs_work(shoot):
            return False
        requested = integer(at(shoot, "operation", "sequence"))
        return (
            not is_confined(shoot)
            or is_deleting(shoot)
            or requested != integer(at(shoot, "status", "observedOperationSequence"))
        )

    async def bind(self, shoot: Object, seed: str) -> Object:
        where, version = key(shoot), metadata(shoot).get("resourceVersion")
        patch: Object = {"metadata": {"resourceVersion": version}, "spec": {"seedName": seed}}
        return await self.client.patch(SHOOTS, where, patch)

    async def migrated(self, shoot: Object) -> None:
        """Request a reconciliation: a status write cannot raise the generation here."""
        await self.operate(SHOOTS, key(shoot), keys.OPERATION_RECONCILE)


def _token(answer: bytes, *, now: datetime) -> Token:
    try:
        request = orjson.loads(answer)
        status, created = request["status"], metadata(request).get("creationTimestamp")
        issued, expires = parse_time(created) if created else now, parse_time(status["expirationTimestamp"])
        if not isinstance(status["token"], str) or not status["token"]:
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError):
        raise NotUnderstood("the response to the TokenRequest has no token") from None
    return Token(status["token"], expires - issued)


async def recognized(client: Client) -> GardenApi:
    """Return the API of the garden that the client connects to.

    Raises:
        KubeError: it is unreachable, or serves no garden.
    """
    names = await discovery_documents.names(client.read, SHOOTS.api_version)
    if SHOOTS.plural not in names:
        raise KindNotServed(SHOOTS.api_version, SHOOTS.kind)
    return AggregatedApi(client) if _BINDING in names else PlainApi(client)
