"""A road to an API server that can be closed. It passes TLS on, so client certificates arrive, unlike at `proxied`.

with Relay(cluster.url) as relay:
    kubeconfig = relay.kubeconfig(cluster.kubeconfig, tmp_path / "kubeconfig")
    ...
    relay.close_road()
    relay.open_road()
"""

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from localprocesses.local import HOST


class Relay:
    """It has a thread of its own. Args: upstream: URL of the API server."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._port = urlsplit(upstream).port or 443
        self._is_closed = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self.refused = 0
        """Connections while the road was closed."""

    @property
    def url(self) -> str:
        port = self._server.sockets[0].getsockname()[1]
        return f"https://{HOST}:{port}"

    def kubeconfig(self, original: Path, copy: Path) -> Path:
        """The same, by this road."""
        copy.write_text(original.read_text().replace(self._upstream, self.url))
        copy.chmod(0o600)
        return copy

    def close_road(self) -> None:
        """Connections are reset: those that are open, and those that come."""
        self._is_closed = True
        self._loop.call_soon_threadsafe(self._reset)

    def open_road(self) -> None:
        self._is_closed = False

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        listening = asyncio.start_server(self._accept, HOST, 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        self._reset()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _reset(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closed:
            self.refused += 1
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # The streams of Python 3.11 take it for an error if this ends by cancellation.
        with contextlib.suppress(OSError, asyncio.CancelledError):
            try:
                await self._join(reader, writer)
            finally:
                writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        its_reader, its_writer = await asyncio.open_connection(HOST, self._port)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, its_writer))
                both.create_task(_pump(its_reader, writer))
        finally:
            its_writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
