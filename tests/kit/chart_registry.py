"""A registry with charts that may do anything, and a proxy that leads there."""

import asyncio
import base64
import contextlib
import hashlib
import ssl
from collections.abc import AsyncIterator

import orjson
from aiohttp import web

from agent.gardenlet.common.charts.rules.registries import Reference, reference
from kit.chart_archives import packed

_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_CONFIG = "application/vnd.cncf.helm.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def basic(password: str) -> str:
    return f"Basic {base64.b64encode(f'me:{password}'.encode()).decode()}"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class FakeRegistry:
    """Speaks the protocol; what it has may be changed. A token is wanted if there is one.

    Attributes:
        password: wanted for the token, or else for everything; empty: anybody may ask.
        elsewhere: where blobs are.
        answer: instead of all others.
        answers: whether it answers.
        sent: host and credentials of each request.
    """

    def __init__(self) -> None:
        self.password = self.token = self.elsewhere = self.host = ""
        self.answer: web.Response | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        self.sent: list[tuple[str, str]] = []
        self.archive = packed()
        self.blobs: dict[str, bytes] = {}
        self.tags: dict[str, bytes] = {}
        self.requests: list[str] = []

    def tag(self, name: str, archive: bytes, *, size: int | None = None) -> str:
        """The digest of the manifest."""
        layers = [{"mediaType": _LAYER, "digest": self._add(archive), "size": len(archive) if size is None else size}]
        about = b'{"apiVersion": "v1", "name": "c", "version": "0.1.0"}'
        config = {"mediaType": _CONFIG, "digest": self._add(about), "size": len(about)}
        manifest = orjson.dumps({"schemaVersion": 2, "mediaType": _MANIFEST, "config": config, "layers": layers})
        self.tags[name] = self.tags[digest_of(manifest)] = manifest
        return digest_of(manifest)

    def _add(self, content: bytes) -> str:
        self.blobs[digest_of(content)] = content
        return digest_of(content)

    def reference(self, version: str, *, host: str = "") -> Reference:
        name = f"{host or self.host}/charts/c"
        return reference({"ref": f"{name}{'@' if version.startswith('sha256') else ':'}{version}"})

    async def respond(self, request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization", "")
        self.requests.append(request.path)
        self.sent.append((request.host, given))
        await self.answers.wait()
        if self.answer is not None:
            return self.answer
        if self.password and (request.path == "/token" or not self.token) and given != basic(self.password):
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="r"'})
        if request.path == "/token":
            return web.json_response({"token": self.token})
        is_elsewhere = request.host.startswith("localhost")
        if self.elsewhere and "blobs" in request.path and not is_elsewhere:
            return web.Response(status=307, headers={"Location": f"{self.elsewhere}{request.path}?signature=s3cret"})
        if self.token and not is_elsewhere and given != f"Bearer {self.token}":
            requested = f'Bearer realm="{request.scheme}://{request.host}/token",service="r"'
            return web.Response(status=401, headers={"WWW-Authenticate": requested})
        kind, name = request.path.split("/")[-2:]
        content = (self.blobs if kind == "blobs" else self.tags).get(name)
        if content is None:
            return web.Response(status=404)
        return web.Response(body=content, content_type=_MANIFEST if kind == "manifests" else "application/octet-stream")

    @contextlib.asynccontextmanager
    async def serving(self, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
        """The port."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self.respond)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        port = runner.addresses[0][1]
        self.host = f"127.0.0.1:{port}"
        try:
            yield port
        finally:
            self.answers.set()
            await runner.cleanup()


@contextlib.asynccontextmanager
async def proxy_to(port: int) -> AsyncIterator[str]:
    """The address of a proxy for TLS, by which every host is what is served at a port of this computer."""
    tasks = set[asyncio.Task[None]]()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"CONNECT "):
                writer.close()
                return
            there = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            tasks.add(asyncio.create_task(copy(reader, there[1])))
            tasks.add(asyncio.create_task(copy(there[0], writer)))

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
