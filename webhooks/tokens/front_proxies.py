"""Forwarded requests of users: from the garden's API server, identified by its certificate of a front proxy.

Every API server publishes the authority of these certificates, their names, and the headers that name the user in the
ConfigMap `kube-system/extension-apiserver-authentication`. It is read periodically, since authorities are replaced.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import orjson
from aiohttp import web

from kube.errors import KubeError
from kube.objects import Key, mapping, text, texts
from kube.resources import CONFIG_MAPS
from kube.runtime.client import Client
from process.logging import get_logger
from webhooks.admission import User
from webhooks.server import Clients
from webhooks.tls import ServingCertificate

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
AUTHORITIES = "requestheader-client-ca-file"
USERS = "client-ca-file"
"""CAs of the API server's own clients."""
_NAMES = "requestheader-allowed-names"
_USER = "requestheader-username-headers"
_GROUPS = "requestheader-group-headers"
_EXTRA = "requestheader-extra-headers-prefix"
_UIDS = "requestheader-uid-headers"
_UID = "X-Remote-Uid"
"""Header of API servers that publish none."""
_LOOK_EVERY_SECONDS = 60.0
_AGAIN_AFTER_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Published settings of the API server; empty if it forwards no requests."""

    authorities: bytes = b""
    """Authorities as PEM."""
    users: bytes = b""
    """Authorities of clients of the API server itself, as PEM."""
    clients: Clients = field(default_factory=partial(Clients, ()))
    user: tuple[str, ...] = ()
    """Names of headers, like the following ones."""
    groups: tuple[str, ...] = ()
    uid: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    """Prefixes of names."""


def parse(data: Mapping[str, object]) -> Published:
    return Published(
        authorities=text(data.get(AUTHORITIES)).encode(),
        users=text(data.get(USERS)).encode(),
        clients=Clients(_listed(data.get(_NAMES))),
        user=_listed(data.get(_USER)),
        groups=_listed(data.get(_GROUPS)),
        uid=_listed(data.get(_UIDS)) or (_UID,),
        extra=_listed(data.get(_EXTRA)),
    )


def _listed(value: object) -> tuple[str, ...]:
    try:
        return tuple(texts(orjson.loads(text(value) or "[]")))
    except orjson.JSONDecodeError:
        return ()


def user_of(headers: Iterable[tuple[str, str]], published: Published) -> User | None:
    """Return the user that the headers name; None if there is none."""
    by_name: dict[str, list[str]] = {}
    for name, value in headers:
        by_name.setdefault(name.lower(), []).append(value)
    name = next((found[0] for header in published.user if (found := by_name.get(header.lower())) and found[0]), "")
    if not name:
        return None
    groups = [group for header in published.groups for group in by_name.get(header.lower(), ())]
    extra = {
        header[len(prefix) :]: tuple(values)
        for prefix in map(str.lower, published.extra)
        for header, values in by_name.items()
        if header.startswith(prefix)
    }
    uid = next((found[0] for header in published.uid if (found := by_name.get(header.lower())) and found[0]), "")
    return User(name=name, groups=tuple(groups), uid=uid, extra=extra)


class FrontProxies:
    """Keeps the published settings of the API server current; `client` is that of the garden."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._published = Published()
        self._problem = ""
        self._log = get_logger("tokens")

    def __str__(self) -> str:
        return f"{AUTHORITIES} of ConfigMap {NAMESPACE}/{NAME} of the garden"

    @property
    def published(self) -> Published:
        return self._published

    def authorities(self) -> bytes:
        return self._published.authorities

    def user(self, request: web.BaseRequest) -> User | None:
        """Return the user that the garden's API server names; None if it did not send the request."""
        published = self._published
        if not published.authorities or not published.clients.knows(request.transport):
            return None
        return user_of(request.headers.items(), published)

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(_AGAIN_AFTER_SECONDS if self._problem else _LOOK_EVERY_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Read the settings; an error leaves them unchanged."""
        problem = ""
        try:
            found = await self._client.find(CONFIG_MAPS, Key(NAMESPACE, NAME))
            self._published = parse(mapping((found or {}).get("data")))
            if not self._published.authorities:
                problem = "it is missing; start the API server with --requestheader-client-ca-file"
        except KubeError as error:
            problem = str(error)
        if problem and problem != self._problem:
            self._log.warning(f"Cannot identify users without {self}", error=problem)
        self._problem = problem


class Users:
    """Authorities of the API server's own clients, as those of a server in front of it."""

    def __init__(self, proxies: FrontProxies) -> None:
        self._proxies = proxies

    def __str__(self) -> str:
        return f"{USERS} of ConfigMap {NAMESPACE}/{NAME} of the garden"

    def authorities(self) -> bytes:
        return self._proxies.published.users


class Trust:
    """Loads the certificate of a server after the authorities of its clients, which it needs."""

    def __init__(self, name: str, proxies: FrontProxies, certificate: ServingCertificate) -> None:
        self.name = name
        self._proxies, self._certificate = proxies, certificate

    async def start(self) -> None:
        await self._proxies.look()
        await self._certificate.start()

    async def wait(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._proxies.follow())
            tasks.create_task(self._certificate.wait())

    async def stop(self) -> None:
        pass
