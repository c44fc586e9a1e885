"""Charts from registries: as anybody may fetch them, of bounded size, and only if they have the digest that was named.

    chart = await registry.chart(reference)      # Chart(digest, archive)

A tag is asked for its digest each time; what has been fetched of a digest is kept, as long as it is not much in all.
Nothing of this needs the program `helm`, whose processes have no network.
"""

import asyncio
import hashlib
import ssl
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import orjson

from agent.gardenlet.charts.rules.registries import (
    MANIFESTS,
    Reference,
    RegistryError,
    chart_layer,
    check_digest,
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
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Chart:
    """Attributes: digest: of its manifest."""

    digest: str
    archive: bytes


class Registry:
    """What registries have. Args: kept: bytes of archives that are kept."""

    def __init__(self, *, kept: int = _KEPT) -> None:
        self._most = kept
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
                return await _fetched(session, url, accept=accept, most=most)
        except TimeoutError as error:
            raise RegistryError(f"{reference}: the registry does not answer within {_SECONDS:g} s") from error
        except (OSError, ValueError, aiohttp.ClientError) as error:
            raise RegistryError(f"{reference}: {error}") from error
        except RegistryError as error:
            raise RegistryError(f"{reference}: {error}") from error

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Trusts the authorities of this machine."""
        return ssl.create_default_context()


def _digest_of(manifest: bytes) -> str:
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


async def _fetched(session: aiohttp.ClientSession, url: str, *, accept: str, most: int) -> bytes:
    """Raises RegistryError, OSError, ValueError, ClientError."""
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    status, answer, challenge = await _answer(session, url, headers, most=most)
    if status == 401 and (where := token_url(challenge)):
        status, answer, _ = await _answer(session, where, {"Accept": "application/json"}, most=_LARGEST_ANSWER)
        if status != 200:
            raise RegistryError(f"no token is given to anybody: HTTP {status}")
        given = mapping(orjson.loads(answer))
        token = text(given.get("token")) or text(given.get("access_token"))
        status, answer, _ = await _answer(session, url, headers | {"Authorization": f"Bearer {token}"}, most=most)
    if status != 200:
        raise RegistryError(f"the registry answered with HTTP {status}")
    return answer


async def _answer(
    session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], *, most: int
) -> tuple[int, bytes, str]:
    async with session.get(url, headers=headers, max_redirects=_REDIRECTS) as response:
        if response.status != 200:
            return response.status, b"", response.headers.get("WWW-Authenticate", "")
        body = bytearray()
        async for piece in response.content.iter_chunked(_PIECE):
            body += piece
            if len(body) > most:
                raise RegistryError(f"the registry gave more than {most} bytes")
        return response.status, bytes(body), ""
