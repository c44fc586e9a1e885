"""Changes to the head of a request: its path, and the headers that name its user.

Fields are pairs of name and value, both bytes, as HTTP has them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from gardener.api.garden import SHOOTS
from webhooks.tokens.paths import issued_at

Fields = list[tuple[bytes, bytes]]
MOST_FIELDS = 512
"""Maximum of a request, each of which takes microseconds."""

_BINDING = re.compile(f"(/apis/{re.escape(SHOOTS.api_version)}/namespaces/[^/]+/{SHOOTS.plural}/[^/]+)/binding")
_CUSTOM = re.compile(r"/apis/[^/]*\.gardener\.cloud/")
_REMOTE = b"x-remote-"
_FORWARDED = b"x-forwarded-for"
_PROTOBUF = b"application/vnd.kubernetes.protobuf"
_METHOD, _PATH = b":method", b":path"
_NOT_SERVED = b"application/vnd.kubernetes.protobuf-of-custom-resources"
"""Unknown content type, which API servers answer with 415. Protobuf for a custom resource makes some of them panic."""


def changed_target(method: str, target: str) -> str:
    """Return path and query for the API server.

    - POST of a request for credentials: the path at which the token server issues them.
    - PUT or PATCH of a Shoot's `binding`: the Shoot itself. The API server authorizes the write of the Shoot, and
      admission demands the right to update `shoots/binding` where it changes the Seed.
    """
    path, mark, query = target.partition("?")
    if method == "POST":
        path = issued_at(path) or path
    elif method in {"PUT", "PATCH"} and (found := _BINDING.fullmatch(path)):
        path = found[1]
    return f"{path}{mark}{query}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """Names of the headers that name a user, as the API server publishes them."""

    user: str
    groups: str
    untrusted: frozenset[bytes] = frozenset()
    """Names in lower case that clients must not send."""
    prefixes: tuple[bytes, ...] = ()
    """Prefixes of such names."""

    def are_untrusted(self, name: bytes) -> bool:
        name = name.lower()
        return name.startswith((_REMOTE, *self.prefixes)) or name in self.untrusted


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """User of a verified client certificate."""

    user: str
    groups: tuple[str, ...]
    until: datetime
    """End of the certificate."""

    def fields(self, headers: Headers) -> Fields:
        groups = [(headers.groups, group) for group in self.groups if headers.groups]
        named = [(headers.user, self.user), *groups]
        return [(name.lower().encode(), value.encode()) for name, value in named]


class NoIdentity(ValueError):
    """A certificate names no user that headers can express."""


def identity_of(certificate: Mapping[str, Any]) -> Identity:
    """Return user (CN) and groups (O) of a certificate, in the form of `ssl.SSLSocket.getpeercert`.

    Raises:
        NoIdentity: it has no user, or a name has control characters or surrounding space, which headers lose.
    """
    subject = [pair for rdn in certificate.get("subject", ()) for pair in rdn]
    users = [value for name, value in subject if name == "commonName"]
    groups = tuple(value for name, value in subject if name == "organizationName")
    if not users or not all(_fits(value) for value in (*users, *groups)):
        raise NoIdentity("the subject of the client certificate can't be expressed in HTTP headers")
    return Identity(user=users[-1], groups=groups, until=parsedate_to_datetime(_as_date(certificate["notAfter"])))


def _fits(value: str) -> bool:
    return bool(value) and value == value.strip() and value.isprintable()


def _as_date(text: str) -> str:
    """Return OpenSSL's `Jan  5 09:34:43 2018 GMT` in the form of mail."""
    month, day, time, year, _zone = text.split()
    return f"{day} {month} {year} {time} +0000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Change to all requests of one connection.

    Attributes:
        identity: of the client's certificate; None: the API server identifies the client by its own means.
        address: of the client.
    """

    headers: Headers
    identity: Identity | None
    address: str

    def head(self, method: str, target: str, fields: Fields) -> tuple[str, Fields]:
        """Return target and fields of a request."""
        named = self.identity.fields(self.headers) if self.identity is not None else []
        kept = [*_with_client(self.trailers(_without_protobuf(fields, target)), self.address), *named]
        return changed_target(method, target), kept

    def block(self, fields: Fields) -> Fields:
        """Return the fields of a header block of HTTP/2: a request, or trailers, which have no path."""
        pseudo = {name: value for name, value in fields if name.startswith(b":")}
        if _PATH not in pseudo:
            return self.trailers(fields)
        method, path = pseudo.get(_METHOD, b"").decode("latin-1"), pseudo[_PATH].decode("latin-1")
        target, changed = self.head(method, path, fields)
        return [(name, target.encode("latin-1") if name == _PATH else value) for name, value in changed]

    def trailers(self, fields: Fields) -> Fields:
        """Return the fields without those that name a user, which only this proxy may send."""
        return [(name, value) for name, value in fields if not self.headers.are_untrusted(name)]


def _without_protobuf(fields: Fields, target: str) -> Fields:
    if not _CUSTOM.match(target):
        return fields
    return [(name, _NOT_SERVED if _is_protobuf(name, value) else value) for name, value in fields]


def _is_protobuf(name: bytes, value: bytes) -> bool:
    return name.lower() == b"content-type" and value.partition(b";")[0].strip().lower() == _PROTOBUF


def _with_client(fields: Fields, address: str) -> Fields:
    """Add the client's address to `X-Forwarded-For`, which the API server writes to its audit log."""
    known = [value for name, value in fields if name.lower() == _FORWARDED]
    others = [(name, value) for name, value in fields if name.lower() != _FORWARDED]
    return [*others, (_FORWARDED, b", ".join((*known, address.encode())))]
