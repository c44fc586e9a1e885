"""The interface, its two implementations, and how to find out which of them an API server needs."""

import base64
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import ClassVar

import orjson

from gardenapi.kubeconfigs import CannotIssue, issue
from gardener import keys
from gardener.api.garden import AUTHENTICATION_API, CORE_GROUP, INTERNAL_SECRETS, SHOOTS, WORKLOAD_IDENTITIES
from kube.access_reviews import attributes, is_allowed, self_review
from kube.clock import parse_time
from kube.errors import Forbidden, KindNotServed, KubeError, NotUnderstood
from kube.objects import Key, Object, integer, is_deleting, key, mapping, mappings, metadata, spec, text
from kube.paths import at
from kube.resources import CONFIG_MAPS, SELF_SUBJECT_ACCESS_REVIEWS, SELF_SUBJECT_REVIEWS, Resource
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


class NoKubeconfig(KubeError):
    """The Shoot has no addresses or no certificate authority yet, or the user can't read it; the text says which."""


class GardenApi(ABC):
    """All methods raise KubeError if the API server refuses, or can't be asked."""

    has_own_fields: ClassVar[bool]
    """Whether it stores what only our definitions have, such as the phase of a Seed."""
    _tokens_below: ClassVar[str] = ""
    """Where tokens are issued, if not below the WorkloadIdentity."""

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
        return await self._client.patch(resource, name, patch, namespace=namespace)

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

    @abstractmethod
    async def kubeconfig(self, shoot: Object, role: Role, *, lifetime: timedelta) -> Kubeconfig:
        """Credentials for the Shoot's API server, for whoever the client belongs to.

        Raises:
            Forbidden: the user may not have them.
            NoKubeconfig: there is nothing yet to make them of.
        """

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
        path = WORKLOAD_IDENTITIES.path(namespace=identity.namespace, name=identity.name, subresource="token")
        if self._tokens_below:
            path = f"{self._tokens_below}{path.removeprefix(f'/apis/{WORKLOAD_IDENTITIES.api_version}')}"
        body = {"apiVersion": WORKLOAD_IDENTITIES.api_version, "kind": "TokenRequest", "spec": wanted}
        return _token(await self._client.request("POST", path, body=body), now=now)


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

    async def kubeconfig(self, shoot: Object, role: Role, *, lifetime: timedelta) -> Kubeconfig:
        where = key(shoot)
        request = Resource(CORE_GROUP, SHOOTS.version, role.request_kind, SHOOTS.plural, namespaced=True)
        path = request.path(namespace=where.namespace, name=where.name, subresource=role.subresource)
        body = {
            "apiVersion": AUTHENTICATION_API,
            "kind": role.request_kind,
            "spec": {"expirationSeconds": int(lifetime.total_seconds())},
        }
        answer = mapping(orjson.loads(await self._client.request("POST", path, body=body)))
        status = mapping(answer.get("status"))
        expires = parse_time(text(status.get("expirationTimestamp")))
        return Kubeconfig(base64.b64decode(text(status.get("kubeconfig"))), expires)


class PlainApi(GardenApi):
    """Any API server with our definitions and webhooks."""

    has_own_fields = True
    _tokens_below = f"/apis/{AUTHENTICATION_API}"

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
        return await self._client.patch(SHOOTS, where.name, patch, namespace=where.namespace)

    async def migrated(self, shoot: Object) -> None:
        """A status write can't raise the generation here."""
        where = key(shoot)
        await self.operate(SHOOTS, where.name, keys.OPERATION_RECONCILE, namespace=where.namespace)

    async def kubeconfig(self, shoot: Object, role: Role, *, lifetime: timedelta) -> Kubeconfig:
        where = key(shoot)
        user = await self._demand(where.namespace, where.name, role)
        try:
            authority = await self._client.find(INTERNAL_SECRETS, f"{where.name}.ca-client", namespace=where.namespace)
            cluster = await self._client.find(CONFIG_MAPS, f"{where.name}.ca-cluster", namespace=where.namespace)
        except Forbidden as error:
            reason = "you may have one, but not read what it is made of, as operators of the garden may"
            raise NoKubeconfig(f"no kubeconfig for shoot {where}: {reason}: {error}") from error
        addresses = mappings(at(shoot, "status", "advertisedAddresses"))
        try:
            content, expires = issue(
                name=f"{where.namespace.removeprefix('garden-')}--{where.name}",
                addresses={text(each.get("name")): text(each.get("url")) for each in addresses},
                authority=mapping((authority or {}).get("data")),
                cluster=text(mapping((cluster or {}).get("data")).get("ca.crt")),
                user=user,
                group=role.group,
                now=datetime.now(UTC),
                lifetime=lifetime,
            )
        except CannotIssue as error:
            raise NoKubeconfig(f"no kubeconfig for shoot {where}: {error}") from error
        return Kubeconfig(content, expires)

    async def _demand(self, namespace: str, name: str, role: Role) -> str:
        """The name of the user, who may have such a kubeconfig. Raises Forbidden."""
        asked = attributes("create", SHOOTS, subresource=role.subresource, namespace=namespace, name=name)
        if not is_allowed(await self._client.create(SELF_SUBJECT_ACCESS_REVIEWS, self_review(asked))):
            message = f'you may not create {SHOOTS.plural}/{role.subresource} for "{namespace}/{name}"'
            raise Forbidden(403, message=message, reason="Forbidden")
        body: Object = {**SELF_SUBJECT_REVIEWS.type_meta, "metadata": {}}
        return text(at(await self._client.create(SELF_SUBJECT_REVIEWS, body), "status", "userInfo", "username"))


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
