"""Requests to an etcd by its JSON gateway, for backups."""

import asyncio
import base64
import binascii
import gzip
import json
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import aiohttp

from localprovider.runner.snapshots import Snapshot, unpacked

_SECONDS = 5.0
_SNAPSHOT_SECONDS = 120.0
_BLOCK = 1 << 20
_FAST = 1
"""Compression level of gzip."""


class EtcdRefuses(Exception):
    """The etcd does not answer, or not as expected; the text has the reason."""


@dataclass(frozen=True, slots=True)
class EtcdClient:
    """Client of an etcd.

    Args:
        url: URL of its server for clients.
        certificates: directory with client/tls.crt, client/tls.key and ca/bundle.crt.
    """

    session: aiohttp.ClientSession
    url: str
    certificates: Path

    async def revision(self) -> int:
        """Return the revision of the last change.

        Raises:
            EtcdRefuses: there is no valid answer.
        """
        try:
            async with self._post("/v3/maintenance/status", _SECONDS) as answer:
                answer.raise_for_status()
                return int((await answer.json())["header"]["revision"])
        except (aiohttp.ClientError, OSError, TimeoutError, KeyError, ValueError) as error:
            raise EtcdRefuses(f"{self.url} does not report its revision: {_reported(error)}") from error

    async def snapshot(self, target: Snapshot) -> None:
        """Write a snapshot, completely or not at all.

        Raises:
            EtcdRefuses: there is no valid answer.
            OSError: it cannot be written.
            OutsideError: its path is not accepted.
        """
        with target.buckets.replacing(target.file) as new:
            try:
                async with self._post("/v3/maintenance/snapshot", _SNAPSHOT_SECONDS) as answer:
                    answer.raise_for_status()
                    await _write(answer.content, new)
            except (aiohttp.ClientError, TimeoutError, KeyError, ValueError) as error:
                raise EtcdRefuses(f"{self.url} gives no snapshot: {_reported(error)}") from error
            if problem := await asyncio.to_thread(_checked, new):
                raise EtcdRefuses(f"{self.url} gives a snapshot that can't be used: {problem}")

    def _post(self, path: str, seconds: float) -> "aiohttp.client._RequestContextManager":
        """Send a request.

        Raises:
            OSError: a certificate is unreadable.
        """
        # A hibernated etcd has none of these files.
        context = ssl.create_default_context(cafile=str(self.certificates / "ca/bundle.crt"))
        context.load_cert_chain(self.certificates / "client/tls.crt", self.certificates / "client/tls.key")
        limit = aiohttp.ClientTimeout(total=seconds)
        return self.session.post(f"{self.url}{path}", json={}, ssl=context, timeout=limit)


def _checked(new: BinaryIO) -> str:
    new.seek(0)
    with Path(os.devnull).open("wb") as nothing:
        return unpacked(new, nothing)


async def _write(answer: aiohttp.StreamReader, target: BinaryIO) -> None:
    """Write the streamed snapshot.

    Raises:
        OSError: it cannot be written.
        KeyError, ValueError: the answer is invalid, or an error.
    """
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=_FAST) as file:
        waiting = bytearray()
        async for line in answer:
            found = json.loads(line)
            if error := found.get("error"):
                raise ValueError(str(error.get("message")))
            waiting += _decoded(found["result"].get("blob", ""))
            if len(waiting) >= _BLOCK:
                await asyncio.to_thread(file.write, bytes(waiting))
                waiting.clear()
        await asyncio.to_thread(file.write, bytes(waiting))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"this is not base64: {error}") from error


def _reported(error: Exception) -> str:
    return str(error) or type(error).__name__
