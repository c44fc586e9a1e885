"""Issuer of tokens, as the Secret `garden/workload-identity-issuer` describes it.

issuer     its URL, which is in every token
key.pem    the RSA key that signs
*.pem      all keys, private or public: tokens of former ones are verified until they expire
"""

import asyncio
import base64
import binascii
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kube.objects import Key, Object, mapping, text
from kube.resources import SECRETS
from kube.runtime.client import Client

if TYPE_CHECKING:
    from kube.jwt import SigningKey

SECRET = Key("garden", "workload-identity-issuer")
ISSUER, KEY, _SUFFIX = "issuer", "key.pem", ".pem"
_REMEMBERED_SECONDS = 30.0


class CannotIssue(Exception):
    """There is no usable issuer; the message names Secret, key and remedy."""

    def __init__(self, secret: Key, problem: str) -> None:
        super().__init__(
            f"no tokens can be issued: Secret {secret} {problem}; put the URL of the issuer into its key"
            f" {ISSUER} and an RSA private key as PEM, of 2048 bits or more, into its key {KEY}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    url: str
    key: "SigningKey"
    published: Object
    """All public keys, as a JWK set (RFC 7517)."""

    def configuration(self) -> Object:
        """Return the configuration of OpenID Connect Discovery."""
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }


def read(data: Mapping[str, object], *, secret: Key) -> Issuer:
    """Read the issuer from the data of its Secret.

    Raises:
        CannotIssue: the data are incomplete or invalid.
    """
    # Imported late, to save memory in servers that issue no tokens.
    from kube.jwt import UnusableKey, read_signing_key, read_verification_key

    try:
        decoded = {name: base64.b64decode(text(value), validate=True) for name, value in data.items()}
    except binascii.Error:
        raise CannotIssue(secret, "holds invalid base64") from None
    url = decoded.get(ISSUER, b"").decode(errors="replace").strip().rstrip("/")
    if not url:
        raise CannotIssue(secret, f"has no key {ISSUER}")
    if not _is_url(url):
        raise CannotIssue(secret, f"has a key {ISSUER} that is not a URL of the form https://HOST")
    if KEY not in decoded:
        raise CannotIssue(secret, f"has no key {KEY}")
    keys = {}
    name = KEY
    try:
        signing = read_signing_key(decoded[KEY])
        for name in sorted(name for name in decoded if name.endswith(_SUFFIX)):
            public = read_verification_key(decoded[name])
            keys[public.id] = public.json()
    except UnusableKey as error:
        raise CannotIssue(secret, f"has a key {name} that {error}") from None
    return Issuer(url=url, key=signing, published={"keys": list(keys.values())})


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and not parts.query and not parts.fragment


class Issuers:
    """Issuer from the Secret, which is read at most twice a minute.

    `client` is that of the cluster in which the server runs, which has the Secret.
    """

    def __init__(self, client: Client, *, secret: Key = SECRET, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._secret = secret
        self._clock = clock
        self._until = float("-inf")
        self._known: Issuer | CannotIssue = CannotIssue(secret, "is not known")
        self._reading = asyncio.Lock()

    async def current(self) -> Issuer:
        """Return the issuer.

        Raises:
            CannotIssue: the Secret is missing or unusable.
            KubeError: the Secret is unreadable.
        """
        async with self._reading:
            if self._clock() >= self._until:
                self._known = await self._read()
                self._until = self._clock() + _REMEMBERED_SECONDS
        if isinstance(self._known, CannotIssue):
            raise self._known
        return self._known

    async def _read(self) -> Issuer | CannotIssue:
        found = await self._client.find(SECRETS, self._secret)
        if found is None:
            return CannotIssue(self._secret, "does not exist")
        try:
            return await asyncio.to_thread(read, mapping(found.get("data")), secret=self._secret)
        except CannotIssue as problem:
            return problem
