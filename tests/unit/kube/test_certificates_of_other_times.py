"""A server whose certificate is not valid by the clock of this machine."""

import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from kube.clock import format_time, utc_now
from kube.errors import Unreachable
from kube.runtime.client import Client
from kube.runtime.connection import Connection, Fixed
from kube.runtime.transport import Transport
from kube.x509 import make_ca, make_serving

HOST, DAY = "127.0.0.1", timedelta(days=1)


async def answer(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response()


@pytest.mark.parametrize(("since", "reported"), [(2 * DAY, "not yet valid"), (-2 * DAY, "has expired")])
async def test_the_clock_is_named_as_a_cause(since: timedelta, reported: str, tmp_path: Path) -> None:
    now = utc_now()
    authority = make_ca("test", now=now - 5 * DAY, lifetime=100 * DAY)
    pair = make_serving(authority, [HOST], now=now + since, lifetime=DAY)
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    certificate.write_bytes(pair.certificate_pem)
    key.write_bytes(pair.key_pem)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    server = RawTestServer(answer, host=HOST, scheme="https")
    await server.start_server(ssl=serving)
    url = str(server.make_url("")).rstrip("/")
    try:
        async with Transport(Connection(server=url, tls=trusting, credentials=Fixed(), identity=(url,))) as transport:
            with pytest.raises(Unreachable) as caught:
                await Client(transport, user_agent="test").read("/version")
    finally:
        await server.close()
    text = str(caught.value)
    assert reported in text
    assert f"the clock of this machine is at {format_time(now)[:13]}" in text
