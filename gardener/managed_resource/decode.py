"""Decoding of the data of Secrets to the objects that a ManagedResource describes.

A data key holds a stream of documents: JSON objects one after the other, or YAML split at lines `---`. A document may
be a list of objects. The text is split before it is parsed, so a broken document spoils only itself. An invalid part
becomes a `DecodeError`, never an exception: the rest is applied, the errors are reported, and nothing is
removed meanwhile.

Everything is bounded (decompressed bytes, bytes of a document, values, documents, depth), since a Secret of 100 bytes
may unfold to anything. The functions here only compute; they may run in a thread. No single step takes long, so that
the event loop gets its turns between them: a step of C code blocks it, even in another thread.

Memory is limited rather than text: one character outside the BMP makes each character of its string take four bytes.
So text is decoded document by document, and each object is compressed JSON before the next one is read.
"""

import codecs
import contextlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import brotli
import orjson

from kube.lists import NestedListsError, items_of
from kube.objects import Key, Object, metadata
from kube.packing import compressed, unpacked
from kube.yaml import Budget, DialectError, json_number, load

COMPRESSED_SUFFIX = ".br"
_MIB = 2**20
_STEP = 2**16
"""Decompressed bytes per step; the decoder may return somewhat more."""
LARGEST_SECRET = _MIB
"""Bytes of all values of a Secret together."""
LARGEST_OBJECT = 3 * _MIB
"""Bytes of JSON: the maximum that API servers read of a request."""
LARGEST_DOCUMENT = 4 * _MIB
"""Bytes of text, or characters: room for indentation and comments of the largest object that API servers accept."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one ManagedResource."""

    total_bytes: int = 32 * _MIB
    values: int = 500_000
    """Each takes about 300 bytes while YAML is read."""
    documents: int = 20_000


@dataclass(frozen=True, slots=True)
class Decoded:
    """An object and where it was read; `index` counts the documents of the data key from 0."""

    api_version: str
    kind: str
    name: str
    size: int
    """Bytes of JSON."""
    packed: bytes
    """Compressed JSON. An object above `LARGEST_OBJECT` is kept without its content: it can't be applied."""
    secret: Key
    data_key: str
    index: int

    @property
    def object(self) -> Object:
        return unpacked(self.packed)


@dataclass(frozen=True, slots=True)
class DecodeError:
    secret: Key
    data_key: str
    index: int
    message: str

    def __str__(self) -> str:
        return (
            f"Could not decode resource at index {self.index} in '{self.data_key}' in secret '{self.secret}': "
            f"{self.message}."
        )


@dataclass(frozen=True, slots=True)
class DecodeResult:
    objects: list[Decoded] = field(default_factory=list)
    errors: list[DecodeError] = field(default_factory=list)


def decode_secrets(secrets: Sequence[tuple[Key, Mapping[str, bytes]]], *, limits: Limits | None = None) -> DecodeResult:
    """Everything in these Secrets: in their order, keys sorted bytewise, documents as they stand."""
    decoding = _Decoding(limits or Limits())
    for secret, data in secrets:
        for data_key in sorted(data):
            decoding.read_key(secret, data_key, data[data_key])
    return decoding.result


def unfolded_size(secrets: Iterable[Mapping[str, bytes]], *, limit: int) -> int:
    """Bytes that the data of these Secrets unfold to, counted up to `limit`.

    Of an invalid Brotli stream the valid part counts.
    """
    size = 0
    for data in secrets:
        for data_key, content in data.items():
            size += len(content)
            if data_key.endswith(COMPRESSED_SUFFIX):
                with contextlib.suppress(DialectError):
                    for part in _decompressed(content):
                        size += len(part)
                        if size >= limit:
                            break
            if size >= limit:
                return limit
    return size


class _Decoding:
    def __init__(self, limits: Limits) -> None:
        self.result = DecodeResult()
        self._limits = limits
        self._budget = Budget(limits.values, 2 * limits.total_bytes)
        self._bytes_left = limits.total_bytes
        self._bytes_left_as_json = 2 * limits.total_bytes
        """Escapes and indentation make JSON longer than YAML, or shorter."""
        self._documents_left = limits.documents

    def read_key(self, secret: Key, data_key: str, data: bytes) -> None:
        index = 0
        try:
            text = self._uncompressed(data_key, data)
            self._bytes_left -= max(len(text), len(data))
            for index, document in enumerate(_documents(text, self._budget)):
                for obj in _objects(document):
                    if self._documents_left == 0:
                        limit = self._limits.documents
                        raise DialectError(f"there are more than {limit} documents; use several ManagedResources")
                    self._documents_left -= 1
                    self._add(secret, data_key, index, obj)
        except DialectError as error:
            self.result.errors.append(DecodeError(secret, data_key, index, str(error)))

    def _uncompressed(self, data_key: str, data: bytes) -> bytes:
        try:
            if data_key.endswith(COMPRESSED_SUFFIX):
                data = decompress(data, limit=self._bytes_left)
            if len(data) > self._bytes_left:
                raise TooLongError(len(data))
        except TooLongError as error:
            raise self._unfolds_to_more() from error
        return data

    def _unfolds_to_more(self) -> DialectError:
        total = self._limits.total_bytes
        return DialectError(
            f"the uncompressed Secrets of a ManagedResource have more than {total} bytes; use several ManagedResources"
        )

    def _add(self, secret: Key, data_key: str, index: int, document: Any) -> None:
        if document is None:
            return
        try:
            obj, body = _checked(document)
            self._bytes_left_as_json -= min(len(body), LARGEST_OBJECT)
            if self._bytes_left_as_json < 0:
                self._budget.values = -1
                raise self._unfolds_to_more()
            decoded = Decoded(
                api_version=obj.get("apiVersion") or "",
                kind=obj.get("kind") or "",
                name=metadata(obj).get("name") or "",
                size=len(body),
                packed=compressed(body) if len(body) <= LARGEST_OBJECT else orjson.dumps(_identity(obj)),
                secret=secret,
                data_key=data_key,
                index=index,
            )
            self.result.objects.append(decoded)
        except DialectError as error:
            if self._budget.is_spent:
                raise  # the rest of this key would fail, too
            self.result.errors.append(DecodeError(secret, data_key, index, str(error)))


# --- bytes


class TooLongError(DialectError):
    """There is more content than may be."""


def decompress(data: bytes, *, limit: int) -> bytes:
    """The content of a Brotli stream.

    Raises:
        DialectError: if it is corrupt, truncated, or (TooLongError) longer than `limit` bytes.
    """
    content = io.BytesIO()  # returns its content without a copy
    for part in _decompressed(data):
        if content.getbuffer().nbytes + len(part) > limit:
            raise TooLongError(f"the content is larger than {limit} bytes")
        content.write(part)
    return content.getvalue()


def _decompressed(data: bytes) -> Iterator[bytes]:
    """The content of a Brotli stream piece by piece, however long it is. Raises DialectError."""
    decoder = brotli.Decompressor()
    try:
        part = decoder.process(data, output_buffer_limit=_STEP)
        while part:
            yield part
            part = b"" if decoder.is_finished() else decoder.process(b"", output_buffer_limit=_STEP)
    except brotli.error as error:
        raise DialectError(
            "the value is not a Brotli stream, although its key has the suffix '.br'; correct one of the two"
        ) from error
    if not decoder.is_finished():
        raise DialectError("the Brotli stream is truncated")


def _too_large() -> DialectError:
    return DialectError(
        f"the document is larger than {LARGEST_DOCUMENT} bytes, but API servers accept objects of up to "
        f"{LARGEST_OBJECT}; divide the object"
    )


# --- documents


def _documents(data: bytes, budget: Budget) -> Iterator[Any]:
    """The value of each document, or the DialectError in its place."""
    start = _space_end(data, 0)
    if data[start : start + 1] == b"{":
        yield from _json_documents(data, budget)
    else:
        yield from _yaml_documents(data, budget)


_SHOWN = 8
_SEPARATOR = b"---"


def _separators(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Lines that begin with the separator: start, text behind the separator, and end of each.

    Found by a search for plain bytes: millions of bytes without one take an expression many times as long.
    """
    start = 0 if data.startswith(_SEPARATOR) else data.find(b"\n" + _SEPARATOR) + 1
    while start or data.startswith(_SEPARATOR):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield start, data[start + len(_SEPARATOR) : end], end
        start = data.find(b"\n" + _SEPARATOR, end) + 1
        if not start:
            return


def split(data: bytes) -> Iterator[tuple[int, bytes | DialectError]]:
    """The chunks between separator lines, each with the number of its first line.

    A separator in the very first line of a chunk belongs to that chunk. One with other text than a comment behind
    it is an error that stands for the chunk before it.
    """
    start, line, counted = 0, 1, 0
    for at, text, end in _separators(data):
        rest = text.strip()
        invalid = bool(rest) and not rest.startswith(b"#")
        if not invalid and at == start:
            continue
        line += data.count(b"\n", counted, start)
        counted = start
        if invalid:
            yield line, DialectError(f"invalid Yaml document separator: {_start_of(rest)}")
        else:
            yield line, data[start:at]
        start = end + 1
    if start < len(data):
        # A block scalar at the end has a line break in its value even if the text does not end with one.
        rest = data[start:]
        yield line + data.count(b"\n", counted, start), rest if rest.endswith(b"\n") else rest + b"\n"


def _start_of(text: bytes) -> str:
    """Start of a chunk, long enough to find it; the rest may be a document, and secret."""
    return text.decode(errors="replace") if len(text) <= _SHOWN else f"{text[:_SHOWN].decode(errors='replace')}…"


def _yaml_documents(data: bytes, budget: Budget) -> Iterator[Any]:
    for first_line, chunk in split(data):
        if isinstance(chunk, DialectError):
            yield chunk
            continue
        if len(chunk) > LARGEST_DOCUMENT:
            yield _too_large()
            continue
        try:
            document = load(chunk, budget=budget, first_line=first_line)
        except DialectError as error:
            document = DialectError(str(error))  # without the frames of the parser, and its buffers
        yield document


_TO_LINE_END = re.compile(rb"[^\S\n]*\n?")
_SPACE = re.compile(rb"\s*")


def _json_documents(data: bytes, budget: Budget) -> Iterator[Any]:
    """A stream that begins as JSON may continue as YAML, as long as only one JSON document was read.

    The parser does not stop where a document gets too large. So it gets a window of the text, which moves on when a
    document does not end within it.
    """
    try:
        _take_values(data, budget)
        _demand_utf8(data)
    except UnicodeDecodeError:
        yield DialectError("the text is not UTF-8")
        return
    except DialectError as error:
        yield DialectError(str(error))  # without frames, which keep the text
        return
    at = previous_end = read = 0
    broken: DialectError | None = None
    window: _Window | None = _Window(data, 0)
    while window and (at := _space_end(data, at)) < len(data):
        try:
            value, end = window.read(at)
        except (ValueError, RecursionError) as error:
            if window.is_cut and window.begin < at:
                window = _Window(data, at)
                continue
            is_too_large = window.is_cut and window.is_at_the_end(error)
            broken = _too_large() if is_too_large else DialectError(window.problem(error))
            break
        read += 1
        at = previous_end = end
        yield value
    value = window = None  # the rest needs the memory
    if broken is not None and read > 1:
        yield broken
    elif broken is not None:
        rest = data[_end_of(_TO_LINE_END, data, previous_end) if read else 0 :]
        yield from _first_error_is(broken, _yaml_documents(rest, budget))


def _take_values(data: bytes, budget: Budget) -> None:
    """Count values against the budget, in pieces, up to the first one that exceeds it: ten million take 0.3 s.

    Raises:
        DialectError: there are too many values.
    """
    for start in range(0, len(data), _MIB):
        budget.take(sum(data.count(mark, start, start + _MIB) for mark in (b",", b":", b"[", b"{")))


def _demand_utf8(data: bytes) -> None:
    """Check the encoding, in pieces that are not kept.

    Raises:
        UnicodeDecodeError: the data are not UTF-8.
    """
    for _ in codecs.iterdecode((data[start : start + _MIB] for start in range(0, len(data), _MIB)), "utf-8"):
        pass


_ENDS_OPEN = 16
"""Characters that an incomplete constant, number or escape may have."""


class _Window:
    """Window of at most `LARGEST_DOCUMENT` bytes of UTF-8 as characters; positions count bytes, and only grow."""

    def __init__(self, data: bytes, begin: int) -> None:
        self._data = data
        self.begin = begin
        piece = data[begin : begin + LARGEST_DOCUMENT]
        # A truncated character is left out.
        self._text = codecs.getincrementaldecoder("utf-8")().decode(piece)
        self.is_cut = begin + len(piece) < len(data)
        self._character, self._byte = 0, begin
        """End of the last document."""

    def read(self, at: int) -> tuple[Any, int]:
        """The value at a position, before which there is only space, and where it ends. Raises as JSONDecoder."""
        start = self._character + (at - self._byte)
        value, end = _JSON.raw_decode(self._text, start)
        self._byte = at + len(self._text[start:end].encode())
        self._character = end
        return value, self._byte

    def is_at_the_end(self, error: ValueError | RecursionError) -> bool:
        """Whether the text is valid so far, but ends too early."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _ENDS_OPEN

    def problem(self, error: ValueError | RecursionError) -> str:
        if isinstance(error, json.JSONDecodeError):
            at = self._byte + len(self._text[self._character : error.pos].encode())
            start = self._data.rfind(b"\n", 0, at) + 1
            line, column = self._data.count(b"\n", 0, at) + 1, _characters(self._data[start:at]) + 1
            return f"line {line}, column {column}: invalid JSON: {error.msg}"
        return "nested too deeply" if isinstance(error, RecursionError) else str(error)


_CONTINUATION = bytes(range(0x80, 0xC0))


def _characters(data: bytes) -> int:
    """Number of characters in bytes of UTF-8."""
    return len(data.translate(None, _CONTINUATION))


def _space_end(data: bytes, at: int) -> int:
    return _end_of(_SPACE, data, at)


def _end_of(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    match = pattern.match(data, at)
    return match.end() if match else at


def _first_error_is(broken: DialectError, documents: Iterator[Any]) -> Iterator[Any]:
    # If the text is not YAML either, the JSON error is more helpful.
    for number, document in enumerate(documents):
        yield broken if number == 0 and isinstance(document, DialectError) else document


def _integer(text: str) -> float:
    if len(text) <= 20 and -(2**63) <= (number := int(text)) < 2**64:
        return number
    return json_number(float(text))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


_JSON = json.JSONDecoder(
    parse_float=lambda text: json_number(float(text)), parse_int=_integer, parse_constant=_no_constant
)


# --- requirements of every object


def _objects(document: Any) -> Iterator[Any]:
    """The items of a list, or else the object itself."""
    try:
        yield from items_of(document)
    except NestedListsError as error:
        yield DialectError(str(error))


def _checked(document: Any) -> tuple[Object, bytes]:
    """The object, and its JSON."""
    if isinstance(document, DialectError):
        # A raised error and its frames refer to each other, which keeps their texts until the collector runs.
        raise DialectError(str(document))
    if not isinstance(document, dict):
        raise DialectError(f"the document is {_type_of(document)}, but must be an object (a mapping)")
    _check_strings(document, ("apiVersion", "kind"), "")
    meta = document.get("metadata")
    if meta is not None:
        _check_metadata(meta)
    try:
        return document, orjson.dumps(document)
    except TypeError as error:  # too deep, or half of a surrogate pair
        raise DialectError(f"cannot be written as JSON: {error}") from error


def _check_metadata(meta: Any) -> None:
    if not isinstance(meta, dict):
        raise DialectError(f"metadata is {_type_of(meta)}, but must be a mapping")
    _check_strings(meta, ("name", "namespace", "generateName"), "metadata.")
    for name in ("labels", "annotations"):
        if meta.get(name) is not None:
            meta[name] = _string_map(meta[name], f"metadata.{name}")


_LONGEST_NAME = 1024
"""Characters; no API server accepts as many."""


def _identity(obj: Object) -> Object:
    """The part of an object that messages need to name it."""
    named = {name: (obj.get(name) or "")[:_LONGEST_NAME] for name in ("apiVersion", "kind")}
    meta = metadata(obj)
    return {
        **named,
        "metadata": {name: meta[name][:_LONGEST_NAME] for name in ("namespace", "name") if meta.get(name)},
    }


def _check_strings(mapping: Object, names: Sequence[str], prefix: str) -> None:
    for name in names:
        value = mapping.get(name)
        if value is not None and not isinstance(value, str):
            raise DialectError(f"{prefix}{name} is {_type_of(value)}, but must be a string; put it into quotes")


def _string_map(value: Any, path: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise DialectError(f"{path} is {_type_of(value)}, but must be a mapping")
    for name, text in value.items():
        if text is not None and not isinstance(text, str):
            raise DialectError(f"{path}.{name} is {_type_of(text)}, but must be a string; put it into quotes")
    return {name: text or "" for name, text in value.items()}


def _type_of(value: Any) -> str:
    # The value itself may be secret.
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case None:
            return "null"
    return "a mapping"
