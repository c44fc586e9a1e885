"""URLs as Go's package net/url reads them, which decides about names of registries.

Its errors are part of messages, so the order of the steps is the same.
"""

import re
from typing import NamedTuple

from kube.validation import shown

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.ASCII | re.DOTALL)
_BAD_ESCAPE_OF_HOST = re.compile(r"%(?!25)(?![89A-Fa-f][0-9A-Fa-f]).{0,2}", re.ASCII | re.DOTALL)
_BAD_IN_HOST = re.compile(r"""[^A-Za-z0-9_.~!$&'()*+,;=:\[\]<>"%\x80-\U0010ffff-]""")
_BAD_IN_USER = re.compile(r"[^A-Za-z0-9._:~!$&'()*+,;=%@-]")
_PORT = re.compile(r"(:[0-9]*)?", re.ASCII)


class Url(NamedTuple):
    scheme: str
    host: str
    """Host with its port, if any."""


def parse_url(text: str) -> Url:
    """Parse a URL.

    Raises:
        ValueError: with the error of net/url.
    """
    problem = "net/url: invalid control character in URL" if _CONTROL.search(text) else ""
    rest, _, fragment = text.partition("#")
    try:
        if problem:
            raise ValueError(problem)
        found = _parse(rest)
        _check_escapes(fragment)
    except ValueError as error:
        failed = text if problem or _BAD_ESCAPE.search(fragment) else rest
        raise ValueError(f"parse {shown(failed)}: {error}") from None
    return found


def _parse(text: str) -> Url:
    scheme, rest = "", text
    if match := _SCHEME.match(text):
        scheme, rest = match[1].lower(), text[match.end() :]
    elif text.startswith(":"):
        raise ValueError("missing protocol scheme")
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, "")  # such as mailto:someone
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _host_of(authority), slash + path
    _check_escapes(rest)
    return Url(scheme, host)


def _host_of(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    host = _check_host(host)
    if at:
        if _BAD_IN_USER.search(user):
            raise ValueError("net/url: invalid userinfo")
        _check_escapes(user)
    return host


def _check_host(host: str) -> str:
    if host.startswith("["):
        _, bracket, port = host.rpartition("]")
        if not bracket:
            raise ValueError("missing ']' in host")
    else:
        _, colon, number = host.rpartition(":")
        port = colon + number if colon else ""
    if not _PORT.fullmatch(port):
        raise ValueError(f"invalid port {shown(port)} after host")
    if match := _BAD_ESCAPE_OF_HOST.search(host):
        raise ValueError(f"invalid URL escape {shown(match[0])}")
    if match := _BAD_IN_HOST.search(host):
        raise ValueError(f"invalid character {shown(match[0])} in host name")
    return host


def _check_escapes(text: str) -> None:
    if match := _BAD_ESCAPE.search(text):
        raise ValueError(f"invalid URL escape {shown(match[0])}")
