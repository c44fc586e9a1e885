"""Relays a connection of HTTP/2: header blocks of the client are decoded, changed and encoded again.

All other frames are copied in both directions, those of flow control included, so client and API server agree on
windows, streams and settings as if they were connected directly. Responses are not parsed.
"""

import asyncio
from collections.abc import Awaitable, Callable

from webhooks.front_proxy.rules.hpack import Decoder, Malformed, encode
from webhooks.front_proxy.rules.requests import Fields
from webhooks.front_proxy.streams import MOST, Stream, both, copy, copy_all

PROTOCOL = "h2"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS, _PUSH_PROMISE, _CONTINUATION = 0x1, 0x5, 0x9
_END_STREAM, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x4, 0x8, 0x20
_PRIORITY_BYTES = 5
_LARGEST_FRAME = 16_384
"""Size that every receiver accepts."""
_LARGE_BLOCK = 8 << 10
"""Size that requests with large tokens rarely exceed."""
_FRAME_HEAD = 9
_GREETING_SECONDS = 32.0

Change = Callable[[Fields], Fields]


class Turns:
    """Lets connections decode header blocks one after the other, which takes milliseconds, and the process do all else
    in between. Large blocks, which take the longest, wait for each other only.
    """

    def __init__(self) -> None:
        self._small, self._large = asyncio.Lock(), asyncio.Lock()

    def for_block(self, block: bytes) -> asyncio.Lock:
        return self._large if len(block) > _LARGE_BLOCK else self._small


async def relay(client: Stream, dial: Callable[[], Awaitable[Stream]], *, changed: Change, turns: Turns) -> None:
    """Relay until one side closes its connection.

    Args:
        client: connection of the client.
        dial: opens the connection to the API server, once the client has sent its first bytes.
        changed: of the fields of a request, and of its trailers, which have no path.
        turns: of all connections of the process.

    Raises:
        Malformed: the client violates the protocol; its connection has to be closed.
    """
    try:
        async with asyncio.timeout(_GREETING_SECONDS):
            preface = await client.exactly(len(_PREFACE))
    except TimeoutError:
        return
    if preface != _PREFACE:
        raise Malformed("the client does not speak HTTP/2")
    upstream = await dial()
    try:
        await upstream.send(preface)
        sending = asyncio.create_task(_send(client, upstream, changed, turns))
        await both(sending, asyncio.create_task(copy_all(upstream, client)))
    finally:
        upstream.close()


async def _send(client: Stream, upstream: Stream, changed: Change, turns: Turns) -> None:
    decoder = Decoder()
    while True:
        head = await client.exactly(_FRAME_HEAD)
        length, kind = int.from_bytes(head[:3]), head[3]
        if kind == _HEADERS:
            block = await _block(client, head)
            async with turns.for_block(block):
                encoded = encode(changed(decoder.decode(block)))
                await asyncio.sleep(0)
            await upstream.send(_frames(head[5:], encoded, ends_stream=head[4] & _END_STREAM))
        elif kind in {_CONTINUATION, _PUSH_PROMISE}:
            raise Malformed("a frame is out of place")
        else:
            await upstream.send(head)
            await copy(client, upstream, length)


async def _block(client: Stream, head: bytes) -> bytes:
    """Return a complete header block, without padding and priority."""
    length, flags, stream = int.from_bytes(head[:3]), head[4], head[5:]
    if length > MOST:
        raise Malformed("a header block is too large")
    content = await client.exactly(length)
    if flags & _PADDED:
        if not content or content[0] >= len(content):
            raise Malformed("the padding of a frame is invalid")
        content = content[1 : len(content) - content[0]]
    if flags & _PRIORITY:
        content = content[_PRIORITY_BYTES:]
    parts, size = [content], length
    while not flags & _END_HEADERS:
        head = await client.exactly(_FRAME_HEAD)
        length, flags = int.from_bytes(head[:3]), head[4]
        # An empty frame has a size, too: there must not be any number of them.
        size += _FRAME_HEAD + length
        if head[3] != _CONTINUATION or head[5:] != stream or size > MOST:
            raise Malformed("a header block is interrupted, or too large")
        parts.append(await client.exactly(length))
    return b"".join(parts)


def _frames(stream: bytes, block: bytes, *, ends_stream: int) -> bytes:
    pieces = [block[at : at + _LARGEST_FRAME] for at in range(0, len(block), _LARGEST_FRAME)] or [b""]
    frames = []
    for number, piece in enumerate(pieces):
        kind, flags = (_CONTINUATION, 0) if number else (_HEADERS, ends_stream)
        flags |= _END_HEADERS if number == len(pieces) - 1 else 0
        frames.append(len(piece).to_bytes(3) + bytes((kind, flags)) + stream + piece)
    return b"".join(frames)
