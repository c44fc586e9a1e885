"""Parsing of a tenant's text to a model, and serialization of the model to a new text."""

import re
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import yaml

from gardener.error_codes import RETRYABLE_CONFIGURATION_PROBLEM
from kube.objects import Object
from kube.visible_text import printable
from kube.x509 import load_certificates
from kube.yaml import Budget, DialectError, Dumper, load

LARGEST = 256 << 10
"""Bytes of a file."""
MOST_VALUES = 20_000
"""Values and keys of a file, counting what anchors expand to."""
_LONGEST_ERROR = 300


class UnusableFile(ValueError):
    """A file of a tenant is not allowed, or not readable; the message has the place, and no value of the file."""

    codes = (RETRYABLE_CONFIGURATION_PROBLEM,)


class Fields(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all models. Names are compared exactly: Go would also accept `Exec` for `exec`."""


class Versioned(Fields, frozen=True, kw_only=True):
    """Base of kinds that are decoded by their version."""

    apiVersion: str
    kind: str


M = TypeVar("M", bound=Fields)


def decoded(content: bytes | str) -> Any:
    """The only document of a text, YAML or JSON.

    Raises:
        UnusableFile: the text is invalid, or has more than one.
    """
    size = len(content)
    if size > LARGEST:
        raise UnusableFile(f"is larger than {LARGEST >> 10} KiB; shorten it")
    budget = Budget(MOST_VALUES, characters=2 * LARGEST, unique_keys=True)
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        return load(text, budget=budget)
    except UnicodeDecodeError:
        raise UnusableFile("is not UTF-8; encode it as UTF-8") from None
    except DialectError as error:
        if budget.is_spent:
            raise UnusableFile(f"has more than {MOST_VALUES} values, counting what anchors expand to") from None
        raise UnusableFile(f"is not valid YAML: {_shown(str(error))}") from None


def model(value: Any, of: type[M]) -> M:
    """Model of a decoded file.

    Raises:
        UnusableFile: a field is unknown, or of a wrong type.
    """
    try:
        return msgspec.convert(value, of)
    except msgspec.ValidationError as error:
        raise UnusableFile(_located(str(error))) from None


def plain(fields: Fields) -> Object:
    """Fields as JSON, without those that are not set."""
    found: Object = msgspec.to_builtins(fields)
    return found


def written(content: Object) -> str:
    return yaml.dump(content, Dumper=Dumper, sort_keys=True, width=1 << 20)


def demand_version(found: Versioned, *versions: str, kinds: tuple[str, ...]) -> None:
    """Check apiVersion and kind.

    Raises:
        UnusableFile: they are not among the allowed ones.
    """
    if found.apiVersion not in versions or found.kind not in kinds:
        raise UnusableFile(f"must have apiVersion {' or '.join(versions)} and kind {' or '.join(kinds)}")


def demand_url(url: str, where: str) -> None:
    """Check the URL of a server that the API server calls.

    Raises:
        UnusableFile: it is not a plain HTTPS URL.
    """
    try:
        found = urlsplit(url)
        is_url = found.scheme == "https" and bool(found.hostname) and found.port != 0 and url.isprintable()
    except ValueError:
        is_url = False
    if not is_url or "@" in found.netloc:
        raise UnusableFile(f"{where} must be a URL https://HOST:PORT/PATH without credentials")


def demand_certificates(pem: str | bytes, where: str) -> None:
    """Check PEM certificates.

    Raises:
        UnusableFile: the text is not made of certificates only.
    """
    if not load_certificates(pem.encode() if isinstance(pem, str) else pem):
        raise UnusableFile(f"{where} must be certificates in PEM format, and nothing else")


_PLACE = re.compile(r"^(?P<problem>.*?)(?: - at `(?P<key>key in )?\$\.?(?P<path>.*)`)?$", re.DOTALL)


def _located(error: str) -> str:
    """Place and error: `Object contains unknown field `a` - at `$.b[0]`` -> `b[0]: unknown field `a``."""
    found = _PLACE.match(error)
    problem, path = (found["problem"], found["path"] or "") if found else (error, "")
    problem = problem.replace("Object contains unknown field", "unknown field, which is not allowed:")
    problem = problem.replace("Object missing required field", "required field is missing:")
    return _shown(f"{path}: {problem}" if path else problem)


def _shown(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _LONGEST_ERROR else f"{shown[:_LONGEST_ERROR]}..."
