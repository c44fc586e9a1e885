"""Gardenlets as scenarios start, stop and cut them off."""

import asyncio
import contextlib
import json
import re
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from conformance.gardenlet_scenarios import configuration
from conformance.gardenlet_sites import Sites
from kit.processes.forked_agents import Fork, Forked
from kube.objects import Object
from localprocesses.ports import free_port

_END_SECONDS = 30.0


class Tunnel:
    """To an API server, so that a gardenlet can lose it. Bytes pass as they are: TLS is between the two."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("https://").partition(":")
        self._upstream, self._port = (host, int(port)), free_port()
        self.url = f"https://127.0.0.1:{self._port}"
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    def cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            up_reader, up_writer = await asyncio.open_connection(*self._upstream)
            self._open.add(up_writer)
            await asyncio.gather(_copied(reader, up_writer), _copied(up_reader, writer))
            self._open.discard(up_writer)
        except OSError:
            writer.close()
        finally:
            self._open.discard(writer)


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()


@dataclass(slots=True)
class OwnGardenlet:
    """One that does not run yet. Args: name: of its Seed; directory: for its files; settings: beside those of all."""

    name: str
    sites: Sites
    fork: Fork
    directory: Path
    settings: Object = field(default_factory=dict)
    _process: Forked | None = None
    _tunnels: dict[str, Tunnel] = field(default_factory=dict)
    _ports: dict[str, int] = field(default_factory=dict)

    async def start(self, patch: Object) -> None:
        own = {"metadata": {"name": self.name}, "spec": {"ingress": {"domain": f"ingress.{self.name}.example.com"}}}
        base = _merged(configuration(), {**self.settings, "seedConfig": own})
        await self.start_with(_merged(base, patch))

    async def start_with(self, config: Object) -> None:
        files = {f"${name.upper()}_KUBECONFIG": await self._kubeconfig(name) for name in self.sites}
        text = json.dumps(config)
        for placeholder, file in files.items():
            text = text.replace(placeholder, str(file))
        self._ports = {"healthProbes": free_port(), "metrics": free_port()}
        server = {name: {"bindAddress": "127.0.0.1", "port": port} for name, port in self._ports.items()}
        path = self.directory / f"{self.name}.json"
        path.write_text(json.dumps({**json.loads(text), "server": server}))
        self._process = await self.fork([f"--config={path}"], self.directory / f"{self.name}.log")

    async def _kubeconfig(self, cluster: str) -> Path:
        document: Any = yaml.safe_load(self.sites[cluster].kubeconfig_file.read_text())
        document["clusters"][0]["cluster"]["server"] = await self.url(cluster)
        path = self.directory / f"{self.name}-{cluster}.kubeconfig"
        path.write_text(json.dumps(document))
        return path

    async def url(self, cluster: str) -> str:
        """Under which the gardenlet reaches it."""
        if cluster not in self._tunnels:
            self._tunnels[cluster] = Tunnel(self.sites[cluster].cluster.url)
            await self._tunnels[cluster].start()
        return self._tunnels[cluster].url

    def cut(self, cluster: str) -> None:
        self._tunnels[cluster].cut()

    async def heal(self, cluster: str) -> None:
        await self._tunnels[cluster].start()

    async def ended(self) -> int:
        assert self._process is not None
        return await asyncio.shield(self._process.ended)

    async def stop(self) -> None:
        if self._process is None or not self._process.runs:
            return
        self._process.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.ended(), _END_SECONDS)
        except TimeoutError:
            self._process.signal(signal.SIGKILL)
            await self.ended()

    async def close(self) -> None:
        await self.stop()
        for each in self._tunnels.values():
            each.cut()

    @property
    def state(self) -> str:
        if self._process is None:
            return "not started"
        if self._process.runs:
            return "running"
        return "ended well" if self._process.ended.result() == 0 else "ended with an error"

    async def http(self, path: str, *, metrics: bool = False) -> tuple[int, list[str]]:
        """The code, and the checks that fail; 0: there is no answer."""
        port = self._ports.get("metrics" if metrics else "healthProbes", 1)
        timeout = aiohttp.ClientTimeout(total=30)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"http://127.0.0.1:{port}{path}") as answer,
            ):
                return answer.status, sorted(re.findall(r"\[-\](\S+) failed", await answer.text()))
        except (OSError, aiohttp.ClientError, TimeoutError):
            return 0, []


def _merged(one: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(one, dict):
        return patch
    kept = {name: value for name, value in one.items() if name not in patch}
    return kept | {name: _merged(one.get(name, {}), value) for name, value in patch.items() if value is not None}
