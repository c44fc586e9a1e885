"""Where charts are in registries, and what registries say: the protocol of OCI distribution, as far as it is used."""

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import orjson

from agent.gardenlet.charts.rules.credentials import DIRECTORY
from kube.objects import mapping, mappings, text

MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_CHARTS = ("application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip")
_SCHEME = "oci://"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_HOST = re.compile(r"(?:[a-zA-Z0-9.-]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')


class RegistryError(Exception):
    """A chart can't be had from its registry."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A chart in a registry. Attributes: version: a tag, or a digest."""

    host: str
    repository: str
    version: str

    def __str__(self) -> str:
        return f"{self.host}/{self.repository}{'@' if self.digest else ':'}{self.version}"

    @property
    def digest(self) -> str:
        """Empty: it is named by a tag, which may mean another chart tomorrow."""
        return self.version if _DIGEST.fullmatch(self.version) else ""

    @property
    def url(self) -> str:
        scheme = "http" if _is_this_computer(self.host) else "https"
        return f"{scheme}://{self.host}/v2/{self.repository}"


def reference(repository: Mapping[str, Any]) -> Reference:
    """Args: repository: as in a ControllerDeployment. Raises RegistryError."""
    whole = text(repository.get("ref")).removeprefix(_SCHEME)
    name, version = _divided(whole) if whole else (text(repository.get("repository")).removeprefix(_SCHEME), "")
    if not whole:
        version = text(repository.get("digest")) or text(repository.get("tag"))
    host, _, path = name.partition("/")
    version = version or "latest"
    if not ((_HOST.fullmatch(host) and any(mark in host for mark in ".:")) or host.startswith("localhost")):
        raise RegistryError(f"{name!r} does not begin with the host of a registry, as registry.example.com/charts/name")
    if not _REPOSITORY.fullmatch(path):
        raise RegistryError(f"{path!r} is no name of a repository")
    if not (_DIGEST.fullmatch(version) or _TAG.fullmatch(version)):
        raise RegistryError(f"{version!r} is neither a tag nor a digest (sha256:...)")
    return Reference(host, path, version)


def _divided(whole: str) -> tuple[str, str]:
    """The name, and the digest or else the tag behind it."""
    name, at, digest = whole.partition("@")
    start = name.rfind("/") + 1
    last, _, tag = name[start:].partition(":")
    return name[:start] + last, digest if at else tag


def _is_this_computer(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def check_digest(content: bytes, digest: str) -> None:
    """Raises RegistryError: it is something else."""
    found = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if found != digest:
        raise RegistryError(f"the registry gave content with the digest {found} instead of {digest}")


def chart_layer(manifest: bytes) -> tuple[str, int]:
    """The digest and the size of the archive that a manifest names. Raises RegistryError."""
    try:
        layers = mappings(mapping(orjson.loads(manifest)).get("layers"))
    except orjson.JSONDecodeError as error:
        raise RegistryError("the registry gave a manifest that is no JSON") from error
    for layer in layers:
        digest, size = text(layer.get("digest")), layer.get("size")
        if layer.get("mediaType") in _CHARTS and _DIGEST.fullmatch(digest) and isinstance(size, int):
            return digest, size
    raise RegistryError("the manifest in the registry names no chart of helm")


def token_url(challenge: str, asked: str) -> str:
    """Where a token is given, by the header `WWW-Authenticate` of an answer; empty: nowhere. Raises RegistryError."""
    scheme, _, rest = challenge.partition(" ")
    if scheme.lower() != "bearer":
        return ""
    found = dict(_PARAMETER.findall(rest))
    realm = found.pop("realm", "")
    try:
        is_safe = _is_safe(realm, asked)
    except ValueError:
        is_safe = False
    if not is_safe:
        raise RegistryError("the registry asks for a token that is not given over TLS")
    query = urlencode({name: found[name] for name in ("service", "scope") if name in found})
    return f"{realm}{'&' if urlsplit(realm).query else '?'}{query}" if query else realm


def asks_for_password(challenge: str) -> bool:
    return challenge.partition(" ")[0].lower() == "basic"


def redirected(asked: str, location: str) -> str:
    """Where an answer refers to. Raises RegistryError: that is not to be followed."""
    with suppress(ValueError):
        target = urljoin(asked, location)
        if location and _is_safe(target, asked):
            return target
    raise RegistryError("the registry refers to a place without TLS")


def _is_safe(url: str, asked: str) -> bool:
    """Whether TLS protects what is sent there. Only what is on this computer may refer to this computer without.

    Raises ValueError.
    """
    parts, before = urlsplit(url), urlsplit(asked)
    if not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == before.scheme == "http" and _is_this_computer(parts.netloc))


def is_same_origin(one: str, other: str) -> bool:
    """Whether what is sent to one may be sent to the other, too."""
    return urlsplit(one)[:2] == urlsplit(other)[:2]


def refusal(status: int, host: str, *, is_known: bool) -> str:
    """What an answer means, and what to do. Args: is_known: whether there are credentials for the registry."""
    said = f"the registry answered with HTTP {status}"
    if status == 404:
        return f"{said}: there is no such chart; correct repository, tag or digest"
    if status not in (401, 403):
        return said
    if is_known:
        return f"{said}: its credentials do not suffice; renew those for {host}, or let them pull this repository"
    return f"{said}: give credentials for {host} in config.json of the directory that {DIRECTORY} names"
