"""Heads of HTTP/1.1 and header blocks of HTTP/2, as the front proxy reads them."""

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.http2 import frame
from webhooks.front_proxy import http1 as relay1
from webhooks.front_proxy import http2 as relay2
from webhooks.front_proxy.rules import hpack, http1
from webhooks.front_proxy.rules.http1 import Body, chunk_size, head_of, request, response
from webhooks.front_proxy.streams import MOST, Stream


def head(*lines: bytes) -> bytes:
    return b"\r\n".join((*lines, b"", b""))


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ((), Body(0)),
        ((b"Content-Length: 12",), Body(12)),
        ((b"transfer-encoding: Chunked",), Body(None)),
    ],
)
def test_the_length_of_a_body_is_stated(fields: tuple[bytes, ...], body: Body) -> None:
    assert request(head(b"POST /a HTTP/1.1", b"Host: h", *fields)).body == body


@pytest.mark.parametrize(
    "lines",
    [
        (b"GET /a HTTP/1.0",),
        (b"GET  /a HTTP/1.1",),
        (b"GET https://h/a HTTP/1.1",),
        (b"CONNECT h:443 HTTP/1.1",),
        (b"get /a HTTP/1.1",),
        (b"GET /\xc3\xa4 HTTP/1.1",),
        (b"GET /a HTTP/1.1", b"A : b"),
        (b"GET /a HTTP/1.1", b"A: b", b" c"),
        (b"GET /a HTTP/1.1", b"A: b\nX-Remote-User: root"),
        (b"GET /a HTTP/1.1", b"A: b\rc"),
        (b"GET /a HTTP/1.1", b"A: b\x00"),
        (b"GET /a HTTP/1.1", b": b"),
        (b"GET /a HTTP/1.1", *(b"A: b",) * 513),
        (b"POST /a HTTP/1.1", b"Content-Length: 1", b"Content-Length: 1"),
        (b"POST /a HTTP/1.1", b"Content-Length: +1"),
        (b"POST /a HTTP/1.1", b"Content-Length: 1", b"Transfer-Encoding: chunked"),
        (b"POST /a HTTP/1.1", b"Transfer-Encoding: gzip, chunked"),
        (b"POST /a HTTP/1.1", b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
    ],
)
def test_an_ambiguous_head_is_malformed(lines: tuple[bytes, ...]) -> None:
    with pytest.raises(http1.Malformed):
        request(head(*lines))


@pytest.mark.parametrize(
    ("method", "lines", "body"),
    [
        ("GET", (b"HTTP/1.1 200 OK", b"Content-Length: 3"), Body(3)),
        ("GET", (b"HTTP/1.1 200 OK",), Body(None, ends_connection=True)),
        ("GET", (b"HTTP/1.1 204 No Content",), Body(0)),
        ("GET", (b"HTTP/1.1 100 Continue",), Body(0)),
        ("HEAD", (b"HTTP/1.1 200 OK", b"Content-Length: 3"), Body(0)),
    ],
)
def test_the_end_of_a_response_is_known(method: str, lines: tuple[bytes, ...], body: Body) -> None:
    assert response(head(*lines), method=method).body == body


@pytest.mark.parametrize(
    ("sent", "passed"),
    [
        ((b"Connection: X-Remote-User, keep-alive", b"Keep-Alive: 1"), ()),
        ((b"Connection: close",), ()),
        ((b"Connection: Upgrade", b"Upgrade: SPDY/3.1"), (b"Connection: Upgrade", b"Upgrade: SPDY/3.1")),
        ((b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c"), ()),
        ((b"Upgrade: websocket",), ()),
    ],
)
def test_headers_of_a_connection_are_passed_on_as_understood(
    sent: tuple[bytes, ...], passed: tuple[bytes, ...]
) -> None:
    parsed = request(head(b"GET /a HTTP/1.1", b"Host: h", *sent))
    assert head_of(parsed, target="/b", fields=parsed.fields) == head(b"GET /b HTTP/1.1", b"Host: h", *passed)


@pytest.mark.parametrize(("line", "size"), [(b"1a\r\n", 26), (b"0;a=b\r\n", 0)])
def test_a_chunk_has_a_size(line: bytes, size: int) -> None:
    assert chunk_size(line) == size


@pytest.mark.parametrize("line", [b"\r\n", b"-1\r\n", b"0x1\r\n", b"1 \r\n", b"1;a\nb\r\n", b"123456789\r\n"])
def test_a_chunk_of_doubtful_size_is_malformed(line: bytes) -> None:
    with pytest.raises(http1.Malformed):
        chunk_size(line)


def test_header_blocks_of_a_connection_share_a_table() -> None:
    """The examples of RFC 7541, C.4: codes of appendix B, and entries that earlier blocks have added."""
    decoder = hpack.Decoder()
    blocks = [
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ]
    first, second, third = (decoder.decode(bytes.fromhex(block)) for block in blocks)
    authority = (b":authority", b"www.example.com")
    assert first == [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), authority]
    assert second == [*first, (b"cache-control", b"no-cache")]
    secure = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/index.html")]
    assert third == [*secure, authority, (b"custom-key", b"custom-value")]


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=300), st.binary(max_size=300)), max_size=10))
def test_encoded_fields_are_decoded_as_they_were(fields: list[tuple[bytes, bytes]]) -> None:
    assert hpack.Decoder().decode(hpack.encode(fields)) == fields


@given(st.binary(max_size=200))
def test_any_bytes_are_fields_or_malformed(block: bytes) -> None:
    try:
        fields = hpack.Decoder().decode(block)
    except hpack.Malformed:
        return
    assert sum(len(name) + len(value) for name, value in fields) <= hpack.MOST_DECODED


@pytest.mark.parametrize(
    "block",
    [
        b"\x80",
        b"\xbe",
        b"\x00",
        b"\x00\x05ab",
        b"\x3f\xff\xff\x7f",
        b"\xff\xff\xff\xff\xff\xff\x7f",
        b"\x00\x81\xfe\x00",
        b"\x00\x84\xff\xff\xff\xff\x00",
        b"\x40\x01a\x7f\x81\x1e" + b"b" * 4000 + b"\xbe" * 10_000,
        b"\x90" * 513,
        b"\x20" * 3,
        b"\x90\x20",
    ],
    ids=[
        *("index 0", "no entry", "no name", "short", "table", "integer", "padding", "end", "bomb"),
        *("many fields", "many sizes", "late size"),
    ],
)
def test_an_invalid_block_is_malformed(block: bytes) -> None:
    with pytest.raises(hpack.Malformed):
        hpack.Decoder().decode(block)


CHUNKED = head(b"POST / HTTP/1.1", b"Transfer-Encoding: chunked")
MANY = 2_000


@pytest.mark.parametrize(
    ("protocol", "sent"),
    [
        (relay2.PROTOCOL, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(0x20, 0, 0, b"") * MANY),
        (relay1.PROTOCOL, CHUNKED + b"1\r\nx\r\n" * MANY),
        (relay1.PROTOCOL, CHUNKED + b"0\r\n" + b"a\r\n" * MANY),
    ],
    ids=["frames", "chunks", "trailers"],
)
async def test_other_connections_go_on_during_many_small_parts(protocol: str, sent: bytes) -> None:
    """All of them are in the buffer of the connection, so that no reading waits."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    ours, theirs = socket.socketpair()
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours)
        upstream = Stream(reader, writer)
        received = asyncio.StreamReader(limit=MOST)
        received.feed_data(sent)
        received.feed_eof()

        async def dial() -> Stream:
            return upstream

        client = Stream(received, writer)
        going_on = asyncio.create_task(others())
        if protocol == relay2.PROTOCOL:
            relayed = relay2.relay(client, dial, changed=list, turns=relay2.Turns())
        else:
            relayed = relay1.relay(client, dial, changed=lambda _, target, fields: (target, fields))
        relaying = asyncio.create_task(relayed)
        while not received.at_eof():
            await asyncio.sleep(0)
        for task in (relaying, going_on):
            task.cancel()
        await asyncio.gather(relaying, going_on, return_exceptions=True)
    assert turns >= MANY
