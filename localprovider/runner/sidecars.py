"""Backup sidecars of etcds: HTTPS servers that take a snapshot on request of a client of the etcd."""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from kube.objects import Key
from localprocesses.local import HOST
from process.server import HttpServer

_AUTHORITY, _SERVER = "ca/bundle.crt", ("server/tls.crt", "server/tls.key")
_SECONDS = 150.0
"""Time limit of a request; longer than that of a snapshot."""

Take = Callable[[], Awaitable[str]]
"""Takes a snapshot; returns the problem."""


@dataclass(eq=False, slots=True)
class Sidecars:
    _servers: dict[Key, tuple[list[bytes], HttpServer]] = field(default_factory=dict)
    """Each with the files that it was started with."""

    async def serve(self, etcd: Key, port: int, certificates: Path, take: Take) -> None:
        """Serve with the current certificates.

        Raises:
            OSError: the port is in use, or a file is unreadable.
        """
        current = [(certificates / each).read_bytes() for each in (_AUTHORITY, *_SERVER)]
        if etcd in self._servers and self._servers[etcd][0] == current:
            return
        await self.stop(etcd)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates / _AUTHORITY))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(certificates / _SERVER[0], certificates / _SERVER[1])

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            if (request.method, request.path) != ("POST", "/snapshot/full"):
                return web.json_response({"message": "not found"}, status=404)
            problem = await take()
            return web.json_response({"message": problem}, status=500 if problem else 200)

        server = HttpServer(f"snapshots of {etcd}", answer, host=HOST, port=port, tls=context, request_timeout=_SECONDS)
        await server.start()
        self._servers[etcd] = current, server

    async def stop(self, etcd: Key) -> None:
        if found := self._servers.pop(etcd, None):
            await found[1].stop()

    async def close(self) -> None:
        for each in [*self._servers]:
            await self.stop(each)
