"""Charts from registries: of bounded size, and only if they have the digest that was named.

    chart = await registry.chart(reference)      # Chart(digest, archive)

A tag is asked for its digest each time; what has been fetched of a digest is kept, as long as it is not much in all.
Nothing of this needs the program `helm`, whose processes have no network.

A registry may ask for credentials, or for a token that they are exchanged for. They are sent to no other place than the
registry and that which it names for tokens, and never without TLS unless it is this computer.
"""

import asyncio
import hashlib
import os
import ssl
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from agent.gardenlet.charts.rules.credentials import DIRECTORY, FILE, authorization
from agent.gardenlet.charts.rules.registries import (
    MANIFESTS,
    Reference,
    RegistryError,
    asks_for_password,
    chart_layer,
    check_digest,
    is_same_origin,
    redirected,
    refusal,
    token_url,
)
from kube.objects import mapping, text
from kube.runtime.http import aiohttp

_MIB = 1 << 20
_SECONDS = 60.0
_LARGEST_CHART = 8 * _MIB
_LARGEST_ANSWER = _MIB
_KEPT = 16 * _MIB
_REDIRECTS = 5
_ELSEWHERE = frozenset({301, 302, 303, 307, 308})
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Chart:
    """Attributes: digest: of its manifest."""

    digest: str
    archive: bytes


def with_credentials() -> "Registry":
    """Those of the directory that a variable of the environment names, if there is one."""
    directory = os.environ.get(DIRECTORY)
    return Registry(credentials=Path(directory) if directory else None)


class Registry:
    """What registries have.

    Args:
        kept: bytes of archives that are kept.
        credentials: the directory with the file of credentials; None: there are none.
    """

    def __init__(self, *, kept: int = _KEPT, credentials: Path | None = None) -> None:
        self._most = kept
        self._credentials = credentials
        self._archives: OrderedDict[str, bytes] = OrderedDict()

    async def digest(self, reference: Reference) -> str:
        """Of the manifest; nothing is asked if the reference says it. Raises RegistryError."""
        return reference.digest or _digest_of(await self._manifest(reference))

    async def chart(self, reference: Reference) -> Chart:
        """Raises RegistryError."""
        if (archive := self._archives.get(reference.digest)) is not None:
            self._archives.move_to_end(reference.digest)
            return Chart(reference.digest, archive)
        manifest = await self._manifest(reference)
        digest = _digest_of(manifest)
        archive = self._archives.get(digest)
        if archive is None:
            layer, size = chart_layer(manifest)
            if size > _LARGEST_CHART:
                raise RegistryError(f"the chart has {size} bytes; at most {_LARGEST_CHART} are fetched")
            archive = await self._get(reference, f"blobs/{layer}", most=size)
            check_digest(archive, layer)
            self._keep(digest, archive)
        return Chart(digest, archive)

    def _keep(self, digest: str, archive: bytes) -> None:
        self._archives[digest] = archive
        while sum(map(len, self._archives.values())) > self._most:
            self._archives.popitem(last=False)

    async def _manifest(self, reference: Reference) -> bytes:
        path = f"manifests/{reference.version}"
        manifest = await self._get(reference, path, most=_LARGEST_ANSWER, accept=", ".join(MANIFESTS))
        if reference.digest:
            check_digest(manifest, reference.digest)
        return manifest

    async def _get(self, reference: Reference, path: str, *, most: int, accept: str = "*/*") -> bytes:
        """Raises RegistryError."""
        url = f"{reference.url}/{path}"
        is_near = url.startswith("http:")
        connector = aiohttp.TCPConnector(ssl=True if is_near else self._tls)
        try:
            async with (
                asyncio.timeout(_SECONDS),
                aiohttp.ClientSession(connector=connector, trust_env=not is_near, auto_decompress=False) as session,
            ):
                basic = await asyncio.to_thread(self._authorization, reference)
                return await _fetched(session, reference.host, url, basic, accept=accept, most=most)
        except TimeoutError as error:
            raise RegistryError(f"{reference}: the registry does not answer within {_SECONDS:g} s") from error
        except aiohttp.InvalidURL as error:  # which may have secrets in it
            raise RegistryError(f"{reference}: the registry refers to what is no address") from error
        except (OSError, ValueError, aiohttp.ClientError) as error:
            raise RegistryError(f"{reference}: {error}") from error
        except RegistryError as error:
            raise RegistryError(f"{reference}: {error}") from error

    def _authorization(self, reference: Reference) -> str:
        """As the file says it now, since credentials are renewed. Raises RegistryError."""
        if self._credentials is None:
            return ""
        file = self._credentials / FILE
        try:
            with file.open("rb") as stream:
                content = stream.read(_LARGEST_ANSWER)
            return authorization(content, reference.host, reference.repository)
        except OSError as error:
            raise RegistryError(f"credentials can't be read: {error}; correct {DIRECTORY}") from error
        except ValueError as error:
            raise RegistryError(f"{file} has no credentials: {error}; correct it") from error

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Trusts the authorities of this machine."""
        return ssl.create_default_context()


def _digest_of(manifest: bytes) -> str:
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


async def _fetched(session: aiohttp.ClientSession, host: str, url: str, basic: str, *, accept: str, most: int) -> bytes:
    """Args: basic: the credentials, as a header; empty: none. Raises RegistryError, OSError, ClientError."""
    found = await _answer(session, url, accept=accept, most=most)
    if found.status == 401 and (where := token_url(found.challenge, url)):
        token = await _token(session, host, where, basic)
        found = await _answer(session, url, f"Bearer {token}", accept=accept, most=most)
    elif found.status == 401 and basic and asks_for_password(found.challenge):
        found = await _answer(session, url, basic, accept=accept, most=most)
    if found.status != 200:
        raise RegistryError(refusal(found.status, host, is_known=bool(basic)))
    return found.body


async def _token(session: aiohttp.ClientSession, host: str, url: str, basic: str) -> str:
    found = await _answer(session, url, basic, accept="application/json", most=_LARGEST_ANSWER)
    if found.status != 200:
        raise RegistryError(f"no token is given: {refusal(found.status, host, is_known=bool(basic))}")
    try:
        given = mapping(orjson.loads(found.body))
    except orjson.JSONDecodeError:
        given = {}
    if token := text(given.get("token")) or text(given.get("access_token")):
        return token
    raise RegistryError(f"there is no token in the answer of {urlsplit(url).hostname}")


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    challenge: str


async def _answer(
    session: aiohttp.ClientSession, url: str, credentials: str = "", *, accept: str, most: int
) -> _Answer:
    """Follows what refers elsewhere, without credentials if that is another place."""
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    asked = url
    for _ in range(_REDIRECTS):
        own = {"Authorization": credentials} if credentials and is_same_origin(url, asked) else {}
        async with session.get(asked, headers=headers | own, allow_redirects=False) as response:
            if response.status in _ELSEWHERE:
                asked = redirected(asked, response.headers.get("Location", ""))
                continue
            if response.status != 200:
                return _Answer(response.status, b"", response.headers.get("WWW-Authenticate", ""))
            body = bytearray()
            async for piece in response.content.iter_chunked(_PIECE):
                body += piece
                if len(body) > most:
                    raise RegistryError(f"the registry gave more than {most} bytes")
            return _Answer(200, bytes(body), "")
    raise RegistryError(f"the registry refers elsewhere more than {_REDIRECTS} times")
