"""Conversion of values for log entries: no credentials, no whole objects, bounded size, plain JSON types.

Log entries leave the cluster's trust boundary, so secrecy does not depend on each caller's care: fields with the name
of a credential are replaced, and likely credentials inside any other text (bearer tokens, JSON Web Tokens, private
keys, passwords in URLs) are cut out. Kubernetes objects are reduced to namespace and name.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from kube.clock import format_duration
from kube.objects import Key

REDACTED = "[redacted]"

MAX_TEXT = 16_384
_MAX_ITEMS = 100
_MAX_DEPTH = 6

_SECRET_NAMES = frozenset({"data", "stringdata", "binarydata", "tlskey", "clientkeydata", "privatekey", "cookie"})
_SECRET_ENDINGS = ("token", "password", "passwd", "kubeconfig", "authorization", "clientsecret", "credentials")

# Each match starts with or needs one of these, and a search for them is much faster.
_SUSPICIOUS = re.compile("eyJ|[eE][aA][rR][eE][rR]|PRIVATE KEY|@")
_CREDENTIAL = re.compile(
    r"(?-i:eyJ)[\w-]{8,}(?:\.[\w-]*){0,2}"
    r"|(?<=bearer\s)[\w.~+/=-]{16,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----END).)*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
    r"|(?<=://)[^/@\s]*:[^/@\s]*(?=@)",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)


def redact_text(text: str) -> str:
    """Return the text without likely credentials, cut off if very long."""
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]}… ({len(text) - MAX_TEXT} characters more)"
    if _SUSPICIOUS.search(text):
        return _CREDENTIAL.sub(REDACTED, text)
    return text


def loggable_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return structured fields as plain JSON values, with credentials replaced."""
    return {name: loggable_field(name, value) for name, value in fields.items()}


def loggable_field(name: str, value: Any, depth: int = 0) -> Any:
    if type(value) is bool or value is None or value == "":
        return value
    if not isinstance(value, Key) and _names_a_secret(name):
        return REDACTED
    return _loggable(value, depth)


@lru_cache(maxsize=1024)
def _names_a_secret(name: str) -> bool:
    plain = name.lower().replace("-", "").replace("_", "").replace(".", "")
    return plain in _SECRET_NAMES or plain.endswith(_SECRET_ENDINGS)


def _loggable(value: Any, depth: int) -> Any:
    match value:
        case str():
            return redact_text(value)
        case bool() | int() | float() | None:
            return value
        case Key():
            return _identity(value.namespace, value.name)
        case timedelta():
            return format_duration(value.total_seconds())
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
        case BaseException():
            return redact_text(error_text(value))
        case Mapping():
            return _loggable_mapping(value, depth)
        case list() | tuple() | set() | frozenset():
            return _loggable_items(value, len(value), depth)
        case _:
            return redact_text(str(value))


def _loggable_mapping(value: Mapping[Any, Any], depth: int) -> Any:
    metadata = value.get("metadata")
    if isinstance(metadata, Mapping):
        return _identity(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
    if depth >= _MAX_DEPTH:
        return "{…}"
    result: dict[str, Any] = {}
    for name, item in value.items():
        if len(result) == _MAX_ITEMS:
            result["…"] = f"{len(value) - _MAX_ITEMS} more"
            break
        result[str(name)] = loggable_field(str(name), item, depth + 1)
    return result


def _loggable_items(items: Iterable[Any], length: int, depth: int) -> Any:
    if depth >= _MAX_DEPTH:
        return "[…]"
    result = [_loggable(item, depth + 1) for item, _ in zip(items, range(_MAX_ITEMS), strict=False)]
    if length > _MAX_ITEMS:
        result.append(f"… {length - _MAX_ITEMS} more")
    return result


def _identity(namespace: str, name: str) -> dict[str, str]:
    return {"namespace": namespace, "name": name} if namespace else {"name": name}


def error_text(error: BaseException) -> str:
    """Return one error as its own text, several as `[e1, e2]` without duplicates, like aggregates of Go.

    An error without a text is shown by its type, so that the result is never empty.
    """
    texts = list(dict.fromkeys(_texts(error)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _texts(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [text for member in error.exceptions for text in _texts(member)]
    return [str(error) or type(error).__name__]
