"""Contents of Secrets: one class for each kind of content.

A config can generate the content, which takes a second for RSA keys, and can check whether an existing content is
equivalent, whichever program has generated that.
"""

import base64
import csv
import io
import secrets
import string
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from enum import Enum, auto
from itertools import permutations
from typing import Any

from gardener.basic_auth import lets_in, line_of, new_password
from kube.kubeconfigs import kubeconfig
from kube.x509 import (
    Certificate,
    Pair,
    Profile,
    UnusablePair,
    is_signed_by,
    load_certificates,
    make_from_profile,
    make_rsa_key,
    pem,
    profile_of,
    read_pair,
    read_rsa_key,
    rsa_key_pem,
    ssh_public_key,
)

Data = Mapping[str, bytes]

TEN_YEARS = timedelta(days=3653)
"""Ten years have two or three leap years."""
_BITS = 3072
CA_CERTIFICATE, CA_KEY = "ca.crt", "ca.key"
CERTIFICATE, KEY = "tls.crt", "tls.key"
BUNDLE = "bundle.crt"
RSA_KEY, RSA_PUBLIC_KEY, KEY_BUNDLE = "id_rsa", "id_rsa.pub", "bundle.key"
KUBECONFIG = "kubeconfig"
STATIC_TOKENS = "static_tokens.csv"
ENCRYPTION_KEY, ENCRYPTION_SECRET = "key", "secret"
TUNNEL_KEY = "vpn.tlsauth"
_TUNNEL_KEY = "-----{} OpenVPN Static key V1-----"
USERNAME, PASSWORD, AUTH = "username", "password", "auth"
_LETTERS = string.ascii_letters + string.digits


class Signer(Enum):
    """Choice of the signing CA while a CA is being rotated."""

    CURRENT = auto()
    """Clients: all servers trust both CAs already."""
    OLD = auto()
    """Servers, while the old CA is in use: some clients may not trust the new one yet."""


@dataclass(frozen=True, slots=True)
class Given:
    """Inputs of a content in addition to its config."""

    secret_name: str
    ca: Pair | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Made:
    data: Data
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ABC):
    """Common fields.

    Attributes:
        name: unique in the namespace.
        persist: whether the Secret moves with its Shoot.
        keeps_old: whether the Secret before a rotation stays, until it is ignored.
        renew_after_percentage: share of its lifetime after which it is renewed; 0 for the default.
    """

    name: str
    persist: bool = False
    keeps_old: bool = False
    renew_after_percentage: int = 0

    def described(self) -> dict[str, Any]:
        """Inputs of the content, as JSON."""
        inherited = {field.name for field in fields(Config)} - {"name"}
        own = {name: _as_json(value) for name, value in asdict(self).items() if name not in inherited}
        return {"kind": type(self).__name__, **own}

    @abstractmethod
    def make(self, given: Given, /) -> Made: ...

    @abstractmethod
    def fits(self, data: Data, ca: Certificate | None, /) -> bool:
        """Whether the content equals a newly generated one, except for random values and times."""


def _as_json(value: Any) -> Any:
    match value:
        case Enum():
            return value.name
        case timedelta():
            return int(value.total_seconds())
        case bytes():
            return value.decode("latin-1")
        case tuple() | list():
            return [_as_json(each) for each in value]
        case dict():
            return {name: _as_json(each) for name, each in value.items()}
        case _:
            return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority(Config):
    """A CA. Its common name is the name of its Secret, so that all differ."""

    keeps_old: bool = True
    has_plain_name: bool = False
    """Whether its Secret has the config's name until the first rotation."""
    lifetime: timedelta = TEN_YEARS

    def make(self, given: Given, /) -> Made:
        profile = Profile(common_name=given.secret_name, is_authority=True)
        pair = make_from_profile(profile, make_rsa_key(_BITS), ca=None, now=given.now, lifetime=self.lifetime)
        data = {CA_CERTIFICATE: pair.certificate_pem, CA_KEY: rsa_key_pem(pair.key)}
        return Made(data, pair.certificate.not_valid_after_utc)

    def fits(self, data: Data, _: Certificate | None, /) -> bool:
        pair = authority_in(data)
        return pair is not None and profile_of(pair.certificate).is_authority


def authority_in(data: Data) -> Pair | None:
    """CA in the data; None if there is no usable one."""
    try:
        return read_pair(data.get(CA_CERTIFICATE, b""), data.get(CA_KEY, b""), is_own=True)
    except UnusablePair:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedCertificate(Config):
    """A certificate for a server or a client.

    Attributes:
        authority: name of the CA's config.
        profile: subject and usages.
        signer: choice of the signing CA during a rotation.
        has_chain: whether the CA's certificate follows in the chain.
    """

    authority: str
    profile: Profile
    signer: Signer
    has_chain: bool = False
    lifetime: timedelta = TEN_YEARS

    def make(self, given: Given, /) -> Made:
        if given.ca is None:
            raise ValueError(f"{self.name} needs an authority")
        pair = make_from_profile(self.profile, make_rsa_key(_BITS), ca=given.ca, now=given.now, lifetime=self.lifetime)
        chain = [pair.certificate, *([given.ca.certificate] if self.has_chain else [])]
        data = {CERTIFICATE: pem(*chain), KEY: rsa_key_pem(pair.key)}
        return Made(data, pair.certificate.not_valid_after_utc)

    def fits(self, data: Data, ca: Certificate | None, /) -> bool:
        try:
            pair = read_pair(data.get(CERTIFICATE, b""), data.get(KEY, b""), is_own=True)
        except UnusablePair:
            return False
        chain = load_certificates(data.get(CERTIFICATE))
        return (
            ca is not None
            and self.profile.says_the_same_as(profile_of(pair.certificate))
            and len(chain) == (2 if self.has_chain else 1)
            and is_signed_by(pair.certificate, ca)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RSAKey(Config):
    """A private key: for tokens (with a bundle of all keys that verify), or for SSH (with the public key)."""

    bits: int = 4096
    has_bundle: bool = False
    has_public_key: bool = False

    def make(self, _: Given, /) -> Made:
        key = make_rsa_key(self.bits)
        public = {RSA_PUBLIC_KEY: ssh_public_key(key)} if self.has_public_key else {}
        return Made({RSA_KEY: rsa_key_pem(key), **public})

    def fits(self, data: Data, _: Certificate | None, /) -> bool:
        key = read_rsa_key(data.get(RSA_KEY, b""))
        return key is not None and key.key_size == self.bits and (RSA_PUBLIC_KEY in data) == self.has_public_key


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionKey(Config):
    """Key for encrypting the content of etcd with AES-CBC; its name contains a time, so that two differ."""

    keeps_old: bool = True

    def make(self, given: Given, /) -> Made:
        name = f"key{int(given.now.timestamp())}"
        return Made({ENCRYPTION_KEY: name.encode(), ENCRYPTION_SECRET: base64.b64encode(secrets.token_bytes(32))})

    def fits(self, data: Data, _: Certificate | None, /) -> bool:
        return bool(data.get(ENCRYPTION_KEY)) and bool(data.get(ENCRYPTION_SECRET))


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelKey(Config):
    """Shared key of both ends of an OpenVPN tunnel; packets without it get no response."""

    def make(self, _: Given, /) -> Made:
        lines = (secrets.token_bytes(16).hex() for _ in range(16))
        text = "\n".join([_TUNNEL_KEY.format("BEGIN"), *lines, _TUNNEL_KEY.format("END")])
        return Made({TUNNEL_KEY: text.encode()})

    def fits(self, data: Data, _: Certificate | None, /) -> bool:
        text = data.get(TUNNEL_KEY, b"").decode(errors="replace")
        return _TUNNEL_KEY.format("BEGIN") in text and _TUNNEL_KEY.format("END") in text


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicAuth(Config):
    """A user with a password, also in the format of web servers."""

    user: str

    def make(self, _: Given, /) -> Made:
        password = new_password()
        texts = {USERNAME: self.user, PASSWORD: password, AUTH: line_of(self.user, password)}
        return Made({name: text.encode() for name, text in texts.items()})

    def fits(self, data: Data, _: Certificate | None, /) -> bool:
        found = {name: data.get(name, b"").decode(errors="replace") for name in (USERNAME, PASSWORD, AUTH)}
        return found[USERNAME] == self.user and lets_in(found[AUTH], self.user, found[PASSWORD])


@dataclass(frozen=True, slots=True)
class TokenUser:
    name: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticTokens(Config):
    """Tokens that an API server reads from a file."""

    users: tuple[TokenUser, ...]

    def make(self, _: Given, /) -> Made:
        text = io.StringIO()
        rows = ([_token(), user.name, user.name, ",".join(user.groups)] for user in self.users)
        csv.writer(text, lineterminator="\n").writerows(rows)
        return Made({STATIC_TOKENS: text.getvalue().rstrip("\n").encode()})

    def fits(self, data: Data, _: Certificate | None, /) -> bool:
        rows = csv.reader(io.StringIO(data.get(STATIC_TOKENS, b"").decode(errors="replace")))
        found = [TokenUser(row[1], tuple(filter(None, row[3].split(",")))) for row in rows if len(row) == 4 and row[0]]
        return sorted(found, key=_by_name) == sorted(self.users, key=_by_name)


def _by_name(user: TokenUser) -> str:
    return user.name


def _token() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(128))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenKubeconfig(Config):
    """A kubeconfig whose token is in another file; contains no secrets."""

    keeps_old: bool = True
    context: str
    server: str
    ca_bundle: bytes
    token_file: str

    def make(self, _: Given, /) -> Made:
        return Made({KUBECONFIG: self._text()})

    def fits(self, data: Data, _: Certificate | None, /) -> bool:
        return data.get(KUBECONFIG) == self._text()

    def _text(self) -> bytes:
        user = {"tokenFile": self.token_file}
        return kubeconfig(self.context, server=self.server, ca_bundle=self.ca_bundle, user=user)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle(Config):
    """All certificates or keys that verify: the current one first."""

    of: str
    field: str
    parts: tuple[bytes, ...]

    def make(self, _: Given, /) -> Made:
        return Made({self.field: b"".join(self.parts)})

    def fits(self, data: Data, _: Certificate | None, /) -> bool:
        """Whether the data has these parts in any order: all of them verify."""
        return any(data == {self.field: b"".join(each)} for each in permutations(self.parts))
