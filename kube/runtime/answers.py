"""Answers of an API server, read within bounds and decoded into objects.

An answer that can't be from an API server is an error, even with a code of success: text, another kind, half a list.
"""

import contextlib
import functools
import gc
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from multidict import MultiMapping

from kube import errors
from kube.objects import Object, integer, metadata
from kube.resources import BUILT_IN_GROUPS, Resource
from kube.runtime import codec
from kube.runtime.yielding import Yielding
from kube.visible_text import is_visible

if TYPE_CHECKING:
    import msgspec

_LONGEST_ERROR = 1 << 20
_LONGEST_ANSWER = 32 << 20
_LONGEST_WATCH_LINE = 32 << 20
_LONGEST_LINE = 1 << 20
_LONGEST_NAME, _LONGEST_STATUS = 200, 4096
_STATUS, _METADATA_VERSION = "Status", "meta.k8s.io/v1"
_LARGE_LIST = 1 << 20
"""Bytes from which on a list is decoded item by item, since decoding it would block the event loop noticeably."""
_LARGE = 128 << 10
"""Bytes from which on an answer is decoded without garbage collection."""
MOST_WARNINGS = 32
"""Maximum number of warnings of one answer. API servers send no more than 4096 characters of them."""
LONGEST_WARNING = 512
"""Characters of one warning."""
_LONGEST_HEADER = 16 << 10
_WARNING = re.compile(r'299 [^\s"]+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


class Content(Protocol):
    def iter_any(self) -> AsyncIterator[bytes]:
        """Body in pieces, as it arrives."""


class Response(Protocol):
    """Used part of aiohttp.ClientResponse."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> MultiMapping[str]: ...

    @property
    def content(self) -> Content: ...


async def whole(method: str, path: str, response: Response) -> bytes:
    """Whole body. Raises AnswerTooLong; NotUnderstood if it is a Status of failure."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > _LONGEST_ANSWER:
            raise errors.AnswerTooLong(f'{method} "{path}": the response is larger than {_LONGEST_ANSWER} bytes')
    body = b"".join(chunks)
    if b'"Failure"' in body[:_LONGEST_STATUS] and b'"Status"' in body[:_LONGEST_STATUS]:
        with contextlib.suppress(orjson.JSONDecodeError):
            _demand_success(_mapping(orjson.loads(body)))
    return body


async def error_of(response: Response) -> errors.ApiError | errors.NoStatus:
    """Convert an answer of failure into an error."""
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
    """Parse a JSON object that orjson supports. Raises NotUnderstood."""
    try:
        loaded = _parsed(body)
    except orjson.JSONDecodeError as error:
        raise errors.NotUnderstood(f"the response is not valid JSON: {error}") from error
    return _mapping(loaded)


def _parsed(body: bytes | memoryview) -> Any:
    is_large = len(body) > _LARGE
    if is_large:
        # Nothing that is being created is garbage, and repeated collection takes longer than decoding.
        gc.disable()
    try:
        return orjson.loads(body)
    finally:
        if is_large:
            gc.enable()


async def _object(body: bytes | memoryview, *, yielding: Yielding | None = None) -> Object:
    """Decode any JSON object; see `kube.runtime.codec`. Raises NotUnderstood."""
    try:
        return loads(body)
    except errors.NotUnderstood:
        try:
            return await codec.salvaged(bytes(body), yielding=yielding)
        except codec.NotReadable as error:
            raise errors.NotUnderstood(f"the response {error}") from error


# --- expected objects


async def object_of(resource: Resource, body: bytes, *, metadata_only: bool = False) -> Object:
    """Object of an answer, with the kind of its resource (metadata-only answers have another). Raises NotUnderstood."""
    obj = await _object(body)
    _demand_kind(resource, obj, metadata_only=metadata_only)
    return obj


async def check_deletion(resource: Resource, body: bytes, *, of_many: bool = False) -> None:
    """Check the answer to a deletion: a Status of success, or the deleted objects. Raises NotUnderstood otherwise."""
    answer = await _object(body)
    _demand_success(answer)
    is_status = answer.get("kind") == _STATUS and answer.get("apiVersion") == "v1"
    if is_status and answer.get("status") == "Success":
        return
    kinds = {f"{resource.kind}List"} if of_many else {resource.kind}
    if answer.get("kind") not in kinds or answer.get("apiVersion") != resource.api_version:
        raise errors.NotUnderstood(f"the response to the deletion of {resource} is neither a Status nor an object")


def _demand_success(answer: Object) -> None:
    """Reject a Status of failure, regardless of the code of the answer. Raises NotUnderstood."""
    if answer.get("kind") == _STATUS and answer.get("status") == "Failure":
        raise errors.NotUnderstood(
            f"the response has the code of a success, but reports: {answer.get('message') or answer}"
        )


def _demand_kind(resource: Resource, obj: Object, *, metadata_only: bool) -> None:
    """Check that an object is of the requested kind, and set its kind if it is metadata only. Raises NotUnderstood."""
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if kind == resource.kind and api_version == resource.api_version:
        return
    if metadata_only and kind == "PartialObjectMetadata" and api_version == _METADATA_VERSION:
        _name_after(resource, obj)
        return
    _demand_success(obj)
    raise errors.NotUnderstood(f"the response is not a {resource.kind} of {resource.api_version}: {_shown(obj)}")


def _shown(obj: Object) -> str:
    return f"{obj.get('kind')!r} of {obj.get('apiVersion')!r}"[:_LONGEST_NAME]


# --- lists


async def list_of(
    resource: Resource,
    body: bytes,
    *,
    metadata_only: bool = False,
    managed_fields: bool = False,
    other_kind: Callable[[], Awaitable[str]] | None = None,
) -> Object:
    """One page of a list; its items get the kind of their resource.

    `other_kind` returns the kind of such lists if it is not the usual one. Raises NotUnderstood.
    """
    page = await _page(body, managed_fields=managed_fields)
    await _demand_list(resource, page, other_kind, metadata_only=metadata_only)
    items = page["items"] = [] if page["items"] is None else page["items"]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise errors.NotUnderstood(f"a list of {resource} has an item that is not an object")
    for item in items:
        _name_after(resource, item)
    return page


async def _demand_list(
    resource: Resource, page: Object, other_kind: Callable[[], Awaitable[str]] | None, *, metadata_only: bool
) -> None:
    """Check that a page is a list of this resource. Raises NotUnderstood."""
    kind, api_version = page.get("kind"), page.get("apiVersion")
    expected = {(f"{resource.kind}List", resource.api_version)}
    if metadata_only:
        expected.add(("PartialObjectMetadataList", _METADATA_VERSION))
    if (kind, api_version) not in expected:
        _demand_success(page)
        may_differ = api_version == resource.api_version and resource.group not in BUILT_IN_GROUPS
        if not may_differ or other_kind is None or kind != await other_kind():
            raise errors.NotUnderstood(f"the response is not a list of {resource}: {_shown(page)}")
    about = metadata(page)
    if "items" not in page or (integer(about.get("remainingItemCount")) > 0 and not about.get("continue")):
        raise errors.NotUnderstood(f"the response is an incomplete list of {resource}")


async def _page(body: bytes, *, managed_fields: bool) -> Object:
    """Decode a list; a large one item by item, so that other tasks on the event loop can run between them.

    A list that can't be decoded in one go, because of one of its items, is decoded in the same way.
    """
    yielding = Yielding()
    if len(body) < _LARGE_LIST:
        try:
            return _small_page(body, managed_fields=managed_fields)
        except orjson.JSONDecodeError:
            pass
        page, parts = await _list_parts(body, yielding)
    else:
        import msgspec  # only here: it takes memory, and not all programs list so much

        try:
            found = _list_decoder().decode(body)
            page = {"kind": found.kind, "apiVersion": found.apiVersion, "metadata": found.metadata}
            parts = [memoryview(item) for item in found.items or ()]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            page, parts = await _list_parts(body, yielding)
    items = []
    for part in parts:
        items.append(await _item(part, yielding, managed_fields=managed_fields))
        await yielding.after_long()
    return {**page, "items": items}


def _small_page(body: bytes, *, managed_fields: bool) -> Object:
    """Decode a list in one go. Raises orjson.JSONDecodeError."""
    if managed_fields:
        return _mapping(_parsed(body))
    shorter, cuts = codec.without_managed_fields(body)
    if cuts:
        try:
            page = _mapping(_parsed(shorter))
        except orjson.JSONDecodeError:
            pass
        else:
            if codec.take_cuts(_items(page)) == cuts:
                return page
    page = _mapping(_parsed(body))
    codec.take_cuts(_items(page))
    return page


def _mapping(loaded: Any) -> Object:
    if not isinstance(loaded, dict):
        raise errors.NotUnderstood(f"the response {codec.NO_OBJECT}")
    return loaded


def _items(page: Object) -> list[Any]:
    items = page.get("items")
    return items if isinstance(items, list) else []


async def _list_parts(body: bytes, yielding: Yielding) -> tuple[Object, list[memoryview]]:
    try:
        head, parts = await codec.list_parts(body, yielding)
    except codec.NotReadable as error:
        raise errors.NotUnderstood(f"the response {error}") from error
    return loads(head), parts


async def _item(part: memoryview, yielding: Yielding, *, managed_fields: bool) -> Object:
    if managed_fields:
        return await _object(part, yielding=yielding)
    return await _without_managed_fields(bytes(part), lambda item: item, yielding)


async def _without_managed_fields(
    body: bytes, obj_of: Callable[[Object], Any], yielding: Yielding | None = None
) -> Object:
    """Decode a JSON object; `obj_of` returns the object in it that has managed fields. Raises NotUnderstood."""
    shorter, cuts = codec.without_managed_fields(body)
    if cuts:
        try:
            loaded = loads(shorter)
        except errors.NotUnderstood:
            pass
        else:
            if codec.take_cuts((obj_of(loaded),)) == cuts:
                return loaded
    loaded = await _object(body, yielding=yielding)
    codec.take_cuts((obj_of(loaded),))
    return loaded


@functools.cache
def _list_decoder() -> "msgspec.json.Decoder[Any]":
    import msgspec

    fields = [("kind", str), ("apiVersion", str), ("metadata", dict[str, Any]), ("items", list[msgspec.Raw] | None)]
    return msgspec.json.Decoder(msgspec.defstruct("_List", fields))


# --- watches


async def events_of(
    resource: Resource, response: Response, *, metadata_only: bool = False, managed_fields: bool = False
) -> AsyncIterator[Object]:
    """Events of a watch; their objects get the kind of their resource. Raises NotUnderstood."""
    rest = bytearray()
    async for chunk in response.content.iter_any():
        start = len(rest)
        rest += chunk
        end = rest.rfind(b"\n", start)
        if end < 0:
            if len(rest) > _LONGEST_WATCH_LINE:
                raise errors.NotUnderstood(f"a watch event of {resource} is longer than {_LONGEST_WATCH_LINE} bytes")
            continue
        complete = bytes(rest[:end])
        del rest[: end + 1]
        for line in complete.split(b"\n"):
            if line:
                yield await _event(resource, line, metadata_only=metadata_only, managed_fields=managed_fields)


async def _event(resource: Resource, line: bytes, *, metadata_only: bool, managed_fields: bool) -> Object:
    event = await (_object(line) if managed_fields else _without_managed_fields(line, _object_of_event))
    obj = event.get("object")
    if not isinstance(obj, dict):
        raise errors.NotUnderstood(f"a watch event of {resource} holds no object")
    if event.get("type") != "ERROR":
        _demand_kind(resource, obj, metadata_only=metadata_only)
    if not codec.is_whole(event):
        event["object"] = codec.InPart(obj)
    return event


def _object_of_event(event: Object) -> Any:
    return event.get("object")


async def lines_of(response: Response) -> AsyncIterator[bytes]:
    """Lines of a text. A very long one comes in several pieces."""
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


def warning_texts(headers: Iterable[str]) -> list[str]:
    """Warnings of an API server in addition to its answer, each once, in their order.

    Headers `Warning` of RFC 7234, section 5.5, with the code 299; others are ignored. They name unknown fields,
    deprecated versions, and reports of admission. Any proxy may add some, so they are read within bounds, and reduced
    to printable characters.
    """
    found: dict[str, None] = {}
    for header in headers:
        for quoted in _WARNING.findall(header[:_LONGEST_HEADER]):
            if text := _shown_warning(_ESCAPED.sub(r"\1", quoted)):
                found[text] = None
            if len(found) == MOST_WARNINGS:
                return list(found)
    return list(found)


def _shown_warning(text: str) -> str:
    words = "".join(character if is_visible(character) else " " for character in text).split()
    shown = " ".join(words)
    return shown if len(shown) <= LONGEST_WARNING else f"{shown[: LONGEST_WARNING - 1]}…"
