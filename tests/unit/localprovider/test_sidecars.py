"""Backup sidecar of an etcd: who gets a snapshot of it, at which URL."""

import ssl
from pathlib import Path

import aiohttp
import pytest

from kube.objects import Key
from localprocesses.pki import Authority
from localprocesses.ports import free_port
from localprovider.runner.sidecars import Sidecars

ETCD, NAME = Key("shoot--a--b", "etcd-main"), "etcd-main-client.shoot--a--b.svc"


def _certificates(directory: Path) -> None:
    authority = Authority.create("etcd")
    for each, pair in (("server", authority.issue_server([NAME])), ("client", authority.issue_client("etcd-client"))):
        (directory / each).mkdir(exist_ok=True)
        pair.write(directory / each, "tls")
    (directory / "ca").mkdir(exist_ok=True)
    (directory / "ca/bundle.crt").write_bytes(authority.bundle)


async def _answer(directory: Path, port: int, path: str = "/snapshot/full", *, is_client: bool = True) -> int:
    context = ssl.create_default_context(cafile=str(directory / "ca/bundle.crt"))
    if is_client:
        context.load_cert_chain(directory / "client/tls.crt", directory / "client/tls.key")
    url = f"https://127.0.0.1:{port}{path}"
    async with aiohttp.request("POST", url, ssl=context, server_hostname=NAME) as answer:
        return answer.status


async def test_clients_of_the_etcd_get_a_snapshot(tmp_path: Path) -> None:
    problems, port, sidecars = [""], free_port(), Sidecars()

    async def take() -> str:
        return problems[0]

    _certificates(tmp_path)
    await sidecars.serve(ETCD, port, tmp_path, take)
    try:
        assert await _answer(tmp_path, port) == 200
        assert await _answer(tmp_path, port, "/snapshot/delta") == 404
        with pytest.raises(aiohttp.ClientError):
            await _answer(tmp_path, port, is_client=False)
        problems[0] = "no bucket"
        assert await _answer(tmp_path, port) == 500
        _certificates(tmp_path)  # of a new authority
        await sidecars.serve(ETCD, port, tmp_path, take)
        problems[0] = ""
        assert await _answer(tmp_path, port) == 200
    finally:
        await sidecars.close()
    with pytest.raises(aiohttp.ClientError):
        await _answer(tmp_path, port)
