"""Relays a connection of HTTP/1.1, one request after the other.

The ends of bodies are determined on both sides, so that every further request is parsed: its headers can name no user.
Only after the API server has switched protocols (exec, attach, port-forward) are bytes copied without being parsed.
"""

import asyncio
from collections.abc import Awaitable, Callable

from webhooks.front_proxy.rules import http1 as rules
from webhooks.front_proxy.rules.requests import Fields
from webhooks.front_proxy.streams import MOST, Stream, TooLong, both, copy, copy_all

PROTOCOL = "http/1.1"
_END = b"\r\n\r\n"
_LINE = b"\r\n"
_HEADER_SECONDS = 32.0
_IDLE_SECONDS = 60.0
"""Less than the 90 seconds of API servers, so that an idle connection ends here first."""
_ERROR = "HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

Change = Callable[[str, str, Fields], tuple[str, Fields]]


async def relay(client: Stream, dial: Callable[[], Awaitable[Stream]], *, changed: Change) -> None:
    """Relay until one side closes its connection, or a message is invalid.

    Args:
        client: connection of the client.
        dial: opens the connection to the API server, for the first request.
        changed: target and fields of a request, from its method, target and fields.
    """
    upstream: Stream | None = None
    try:
        while True:
            seconds = _HEADER_SECONDS if upstream is None else _IDLE_SECONDS
            try:
                async with asyncio.timeout(seconds):
                    request = rules.request(await client.until(_END))
            except TimeoutError:
                return
            except rules.Malformed:
                await _refuse(client, 400, "Bad Request")
                return
            except TooLong:
                await _refuse(client, 431, "Request Header Fields Too Large")
                return
            if upstream is None:
                upstream = await dial()
            target, fields = changed(request.method, request.target, request.fields)
            await upstream.send(rules.head_of(request, target=target, fields=fields))
            if not await _exchange(client, upstream, request):
                return
    finally:
        if upstream is not None:
            upstream.close()


async def _exchange(client: Stream, upstream: Stream, request: rules.Request) -> bool:
    """Relay the rest of a request, and its response; return whether another request may follow."""
    sending = asyncio.create_task(_copy_body(client, upstream, request.body))
    try:
        while True:
            head = await upstream.until(_END)
            response = rules.response(head, method=request.method)
            await client.send(head)
            if response.status == rules.SWITCHING:
                if request.upgrades:
                    await sending
                    await _tunnel(client, upstream)
                return False
            if response.status >= 200:
                break
        await _copy_body(upstream, client, response.body)
        # A server may answer before it has read the body; where that ends is then unknown.
        return sending.done() and not (sending.exception() or response.closes or request.closes or request.upgrades)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _tunnel(client: Stream, upstream: Stream) -> None:
    await both(
        asyncio.create_task(copy_all(client, upstream)),
        asyncio.create_task(copy_all(upstream, client)),
    )


async def _copy_body(source: Stream, target: Stream, body: rules.Body) -> None:
    if body.ends_connection:
        await copy_all(source, target)
    elif body.length is not None:
        await copy(source, target, body.length)
    else:
        while size := rules.chunk_size(await source.until(_LINE)):
            await target.send(b"%x\r\n" % size)
            await copy(source, target, size)
            if await source.exactly(len(_LINE)) != _LINE:
                raise rules.Malformed("a chunk is invalid")
            await target.send(_LINE)
        # API servers and their clients use no trailers.
        left = MOST
        while (trailer := await source.until(_LINE)) != _LINE:
            left -= len(trailer)
            if left < 0:
                raise TooLong
            await asyncio.sleep(0)
        await target.send(b"0\r\n\r\n")


async def _refuse(client: Stream, status: int, reason: str) -> None:
    await client.send(_ERROR.format(status=status, reason=reason).encode())
