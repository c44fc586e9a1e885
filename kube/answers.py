"""What an API server answers, read within bounds and made objects.

What is no answer of an API server is an error whatever its code: text, another kind of object, half a list.
"""

import functools
import gc
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from multidict import MultiMapping

from kube import errors
from kube.giving_way import GivingWay
from kube.objects import Object
from kube.resources import Resource

if TYPE_CHECKING:
    import msgspec

_LONGEST_ERROR = 1 << 20
_LONGEST_ANSWER = 32 << 20
_LONGEST_WATCH_LINE = 32 << 20
_LONGEST_LINE = 1 << 20
_LARGE_LIST = 1 << 20
"""Bytes from which on a list may take long enough to decode that others on the event loop would feel it."""
_LARGE = 128 << 10
"""Bytes from which on an answer is decoded without garbage collection."""


class Content(Protocol):
    def iter_any(self) -> AsyncIterator[bytes]:
        """The body in pieces, as it comes."""


class Response(Protocol):
    """Of aiohttp.ClientResponse, what is read."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> MultiMapping[str]: ...

    @property
    def content(self) -> Content: ...


async def whole(method: str, path: str, response: Response) -> bytes:
    """The body. Raises AnswerTooLong."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > _LONGEST_ANSWER:
            raise errors.AnswerTooLong(f'{method} "{path}": the answer is longer than {_LONGEST_ANSWER} bytes')
    return b"".join(chunks)


async def error_of(response: Response) -> errors.ApiError | errors.NoStatus:
    """The error that an answer of failure stands for."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _LONGEST_ERROR:
            break
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    retry_after = response.headers.get("Retry-After", "")
    return errors.from_status(
        response.status,
        status if isinstance(status, dict) else {},
        fallback=body[:500].decode(errors="replace").strip(),
        retry_after=float(retry_after) if retry_after.isdecimal() else None,
    )


def loads(body: bytes | memoryview) -> Object:
    """A JSON object. Raises Unreachable."""
    is_large = len(body) > _LARGE
    if is_large:
        # None of what is being made is garbage, and to look through it again and again takes longer than to make it.
        gc.disable()
    try:
        loaded = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise errors.Unreachable(f"the answer is no JSON: {error}") from error
    finally:
        if is_large:
            gc.enable()
    if not isinstance(loaded, dict):
        raise errors.Unreachable("the answer is no JSON object")
    return loaded


def object_of(resource: Resource, body: bytes) -> Object:
    """The object of an answer, named after its resource (metadata-only answers are not). Raises Unreachable."""
    obj = loads(body)
    if obj.get("kind") == "PartialObjectMetadata":
        _name_after(resource, obj)
    if obj.get("kind") != resource.kind:
        raise errors.Unreachable(f"the answer is no {resource.kind}")
    return obj


def check_deletion(resource: Resource, body: bytes) -> None:
    """API servers answer a deletion by a Status, or by what goes. Raises Unreachable for anything else."""
    if loads(body).get("kind") not in {"Status", resource.kind, f"{resource.kind}List"}:
        raise errors.Unreachable(f"the answer to the deletion of {resource} is neither a Status nor an object")


async def list_of(resource: Resource, body: bytes) -> Object:
    """One page of a list, its items named after their resource. Raises Unreachable."""
    page = await _page(body)
    if not str(page.get("kind")).endswith("List") or "items" not in page:
        raise errors.Unreachable(f"the answer is no list of {resource}")
    items = page["items"] = [] if page["items"] is None else page["items"]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise errors.Unreachable(f"a list of {resource} holds what is no object")
    for item in items:
        _name_after(resource, item)
    return page


async def _page(body: bytes) -> Object:
    """Of a large list, item after item is decoded, and others on the event loop get their turns between them."""
    if len(body) < _LARGE_LIST:
        return loads(body)
    import msgspec  # only here: it takes memory, and not all programs list so much

    try:
        page = _list_decoder().decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return loads(body)  # it is no list; the caller says what is wrong
    items = []
    giving_way = GivingWay()
    for item in page.items or ():
        items.append(loads(memoryview(item)))
        await giving_way.after_long()
    return {"kind": page.kind, "metadata": page.metadata, "items": items}


@functools.cache
def _list_decoder() -> "msgspec.json.Decoder[Any]":
    import msgspec

    fields = [("kind", str), ("metadata", dict[str, Any]), ("items", list[msgspec.Raw] | None)]
    return msgspec.json.Decoder(msgspec.defstruct("_List", fields))


async def events_of(resource: Resource, response: Response) -> AsyncIterator[Object]:
    """The events of a watch, their objects named after their resource. Raises Unreachable."""
    rest = bytearray()
    async for chunk in response.content.iter_any():
        start = len(rest)
        rest += chunk
        end = rest.rfind(b"\n", start)
        if end < 0:
            if len(rest) > _LONGEST_WATCH_LINE:
                raise errors.Unreachable(f"a watch event of {resource} is longer than {_LONGEST_WATCH_LINE} bytes")
            continue
        complete = bytes(rest[:end])
        del rest[: end + 1]
        for line in complete.split(b"\n"):
            if not line:
                continue
            event = loads(line)
            obj = event.get("object")
            if not isinstance(obj, dict):
                raise errors.Unreachable(f"a watch event of {resource} holds no object")
            if event.get("type") != "ERROR":
                _name_after(resource, obj)
            yield event


async def lines_of(response: Response) -> AsyncIterator[bytes]:
    """The lines of a text. One that is very long comes in several pieces."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
        if len(rest) > _LONGEST_LINE:
            yield rest
            rest = b""
    if rest:
        yield rest


def _name_after(resource: Resource, obj: Object) -> None:
    obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
