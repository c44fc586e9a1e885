"""From the data of Secrets to the objects that a ManagedResource describes.

A data key holds a stream of documents: JSON objects one after the other, or YAML split at lines `---`. A document may
be a list of objects. The text is split before it is parsed, so a broken document spoils only itself. What can't be
decoded becomes a `DecodeError`, never an exception: the rest is applied, the errors are reported, and nothing is
removed meanwhile.

Everything is bounded (decompressed bytes, bytes of a document, values, documents, depth), since a Secret of 100 bytes
may unfold to anything. The functions here only compute; they may run in a thread. No single step takes long, so that
the event loop gets its turns between them: a step of C code holds it up wherever it runs.
"""

import codecs
import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import brotli
import orjson

from kube.lists import NestedListsError, items_of
from kube.objects import Key, Object
from kube.yaml import Budget, DialectError, json_number, load

COMPRESSED_SUFFIX = ".br"
_MIB = 2**20
_STEP = 2**16
"""Decompressed bytes a step; the decoder may give somewhat more than is asked for."""
LARGEST_SECRET = _MIB
"""Bytes of all values of a Secret together."""
LARGEST_OBJECT = 3 * _MIB
"""Bytes of JSON: what API servers read of a request."""
LARGEST_DOCUMENT = 4 * _MIB
"""Bytes of text, or characters: with the indentation and comments of an object that an API server may accept."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one ManagedResource may unfold to."""

    total_bytes: int = 32 * _MIB
    values: int = 500_000
    """Each takes about 300 bytes while YAML is read."""
    documents: int = 20_000


@dataclass(frozen=True, slots=True)
class Decoded:
    """An object and where it was read; `index` counts the documents of the data key from 0."""

    object: Object
    secret: Key
    data_key: str
    index: int


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
    """How many bytes the data of these Secrets unfold to; from `limit` on it is not looked further.

    What is no Brotli stream counts as far as it is one.
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
            total = self._limits.total_bytes
            raise DialectError(
                f"the Secrets of a ManagedResource unfold to more than {total} bytes; use several ManagedResources"
            ) from error
        return data

    def _add(self, secret: Key, data_key: str, index: int, document: Any) -> None:
        if document is None:
            return
        try:
            self.result.objects.append(Decoded(_checked(document), secret, data_key, index))
        except DialectError as error:
            if self._budget.is_spent:
                raise  # there is no point in going on with this key
            self.result.errors.append(DecodeError(secret, data_key, index, str(error)))


# --- bytes


class TooLongError(DialectError):
    """There is more content than may be."""


def decompress(data: bytes, *, limit: int) -> bytes:
    """The content of a Brotli stream.

    Raises:
        DialectError: if it is corrupt, truncated, or (TooLongError) longer than `limit` bytes.
    """
    parts: list[bytes] = []
    size = 0
    for part in _decompressed(data):
        size += len(part)
        if size > limit:
            raise TooLongError(f"the content is longer than {limit} bytes")
        parts.append(part)
    return b"".join(parts)


def _decompressed(data: bytes) -> Iterator[bytes]:
    """The content of a Brotli stream piece by piece, however long it is. Raises DialectError."""
    decoder = brotli.Decompressor()
    try:
        part = decoder.process(data, output_buffer_limit=_STEP)
        while part:
            yield part
            part = b"" if decoder.is_finished() else decoder.process(b"", output_buffer_limit=_STEP)
    except brotli.error as error:
        raise DialectError("the value is no Brotli stream, which the suffix '.br' of its key says") from error
    if not decoder.is_finished():
        raise DialectError("the Brotli stream is truncated")


def _too_large() -> DialectError:
    return DialectError(
        f"the document is longer than {LARGEST_DOCUMENT} bytes, and API servers accept objects of up to "
        f"{LARGEST_OBJECT}; divide the object"
    )


# --- documents


def _documents(data: bytes, budget: Budget) -> Iterator[Any]:
    """The value of each document, or the DialectError in its place."""
    if data.lstrip()[:1] == b"{":
        yield from _json_documents(data, budget)
    else:
        yield from _yaml_documents(data, budget)


_SHOWN = 8
_SEPARATOR = b"---"


def _separators(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Of each line that begins with the separator: where it starts, the text behind the separator, and where it ends.

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
        # A block scalar at the end has a line break in its value, whether the text ends with one or not.
        rest = data[start:]
        yield line + data.count(b"\n", counted, start), rest if rest.endswith(b"\n") else rest + b"\n"


def _start_of(text: bytes) -> str:
    """Enough to find it; what follows may be a document, and secret."""
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
            yield load(chunk, budget=budget, first_line=first_line)
        except DialectError as error:
            yield error


_TO_LINE_END = re.compile(r"[^\S\n]*\n?")
_SPACE = re.compile(r"\s*")


def _json_documents(data: bytes, budget: Budget) -> Iterator[Any]:
    """A stream that begins as JSON may go on as YAML, as long as only one JSON document was read.

    The parser does not stop where a document gets too large. So it is given a window of the text, which moves on when a
    document does not end within it.
    """
    try:
        budget.take(sum(data.count(mark) for mark in (b",", b":", b"[", b"{")))
        text = _text_of(data)
    except (UnicodeDecodeError, DialectError) as error:
        yield error if isinstance(error, DialectError) else DialectError("the text is not UTF-8")
        return
    at = previous_end = read = 0
    begin, window = 0, text[:LARGEST_DOCUMENT]
    while (at := _space_end(text, at)) < len(text):
        try:
            value, end = _JSON.raw_decode(window, at - begin)
        except (ValueError, RecursionError) as error:
            is_cut = begin + len(window) < len(text)
            if is_cut and begin < at:
                begin, window = at, text[at : at + LARGEST_DOCUMENT]
                continue
            broken = (
                _too_large() if is_cut and _is_at_the_end(error) else DialectError(_json_problem(error, text, begin))
            )
            if read > 1:
                yield broken
                return
            rest = _TO_LINE_END.sub("", text[previous_end:], count=1) if read else text
            yield from _first_error_is(broken, _yaml_documents(rest.encode(), budget))
            return
        read += 1
        at = previous_end = begin + end
        yield _encodable(value)


def _text_of(data: bytes) -> str:
    """Decoded in pieces. Raises UnicodeDecodeError."""
    pieces = (data[start : start + _MIB] for start in range(0, len(data), _MIB))
    return "".join(codecs.iterdecode(pieces, "utf-8"))


_ENDS_OPEN = 16
"""Characters that an incomplete constant, number or escape may have."""


def _is_at_the_end(error: ValueError | RecursionError) -> bool:
    """Whether the text is not wrong so far, but ends too early."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(error.doc) - _ENDS_OPEN


def _space_end(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _first_error_is(broken: DialectError, documents: Iterator[Any]) -> Iterator[Any]:
    # If the text is no YAML either, then the JSON error says more.
    for number, document in enumerate(documents):
        yield broken if number == 0 and isinstance(document, DialectError) else document


def _json_problem(error: ValueError | RecursionError, text: str, begin: int) -> str:
    if isinstance(error, json.JSONDecodeError):
        found = json.JSONDecodeError(error.msg, text, begin + error.pos)
        return f"line {found.lineno}, column {found.colno}: invalid JSON: {error.msg}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _encodable(value: Any) -> Any:
    try:
        orjson.dumps(value)
    except TypeError as error:  # too deep, or half of a surrogate pair
        return DialectError(f"cannot be written as JSON: {error}")
    return value


def _integer(text: str) -> float:
    if len(text) <= 20 and -(2**63) <= (number := int(text)) < 2**64:
        return number
    return json_number(float(text))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_JSON = json.JSONDecoder(
    parse_float=lambda text: json_number(float(text)), parse_int=_integer, parse_constant=_no_constant
)


# --- what every object must hold to


def _objects(document: Any) -> Iterator[Any]:
    """The items of a list instead of the list."""
    try:
        yield from items_of(document)
    except NestedListsError as error:
        yield DialectError(str(error))


def _checked(document: Any) -> Object:
    if isinstance(document, DialectError):
        raise document
    if not isinstance(document, dict):
        raise DialectError(f"the document is {_type_of(document)}, but must be an object (a mapping)")
    _check_strings(document, ("apiVersion", "kind"), "")
    meta = document.get("metadata")
    if meta is None:
        return document
    if not isinstance(meta, dict):
        raise DialectError(f"metadata is {_type_of(meta)}, but must be a mapping")
    _check_strings(meta, ("name", "namespace", "generateName"), "metadata.")
    for name in ("labels", "annotations"):
        if meta.get(name) is not None:
            meta[name] = _string_map(meta[name], f"metadata.{name}")
    return document


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
