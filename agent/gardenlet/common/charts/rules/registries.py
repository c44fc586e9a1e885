"""References to charts in registries, and the output of `helm pull`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from agent.gardenlet.common.charts.rules.output import error_text
from kube.objects import text

_SCHEME = "oci://"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_VERSION = re.compile(r"v?\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?(_[0-9A-Za-z.-]+)?")
_HOST = re.compile(r"(?:[a-zA-Z0-9.-]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_NOT_SHOWN = re.compile(
    r'(?<=//)[^/@\s"]*@|\?[^\s"]*|(?<=status code \d{3}): .*|(?<=invalid config format): .*', re.DOTALL
)
"""Confidential parts of errors: access data in URLs of redirects, response bodies, credentials."""
_REMEDIES = (
    (
        re.compile(r"status code 40[13]|credential not found"),
        "give credentials for {host} in config.json of {directory}",
    ),
    (re.compile(r"invalid config format"), "correct config.json of {directory}"),
    (re.compile(r"status code 404|: not found\b"), "correct repository, tag or digest"),
    (re.compile(r": file too large"), "at most {most} bytes are fetched"),
)


class RegistryError(Exception):
    """A chart can't be pulled from its registry."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference to a chart in a registry.

    Attributes:
        version: a tag, or a digest.
    """

    host: str
    repository: str
    version: str

    def __str__(self) -> str:
        return f"{self.host}/{self.repository}{'@' if self.digest else ':'}{self.version}"

    @property
    def digest(self) -> str:
        """Digest; empty for a tag, which may move to another chart."""
        return self.version if _DIGEST.fullmatch(self.version) else ""

    @property
    def is_near(self) -> bool:
        """Whether the registry is on this computer, and so needs no TLS."""
        name = urlsplit(f"//{self.host}").hostname or ""
        try:
            return ip_address(name).is_loopback
        except ValueError:
            return name == "localhost"


def reference(repository: Mapping[str, Any]) -> Reference:
    """Parse the `repository` of a ControllerDeployment.

    Raises:
        RegistryError: it is invalid.
    """
    whole = text(repository.get("ref")).removeprefix(_SCHEME)
    name, version = _divided(whole) if whole else (text(repository.get("repository")).removeprefix(_SCHEME), "")
    if not whole:
        version = text(repository.get("digest")) or text(repository.get("tag"))
    host, _, path = name.partition("/")
    version = version or "latest"
    if not ((_HOST.fullmatch(host) and any(mark in host for mark in ".:")) or host.startswith("localhost")):
        raise RegistryError(f"{name!r} has no registry host; write it like registry.example.com/charts/name")
    if not _REPOSITORY.fullmatch(path):
        raise RegistryError(f"{path!r} is not a valid repository name")
    if not (_DIGEST.fullmatch(version) or _TAG.fullmatch(version)):
        raise RegistryError(f"{version!r} is neither a tag nor a digest (sha256:...)")
    return Reference(host, path, version)


def _divided(whole: str) -> tuple[str, str]:
    """Split into name, and digest or else tag."""
    name, at, digest = whole.partition("@")
    start = name.rfind("/") + 1
    last, _, tag = name[start:].partition(":")
    return name[:start] + last, digest if at else tag


def arguments(wanted: Reference) -> list[str]:
    """Arguments that make `helm pull` fetch the chart.

    Raises:
        RegistryError: it would fetch another one, or none.
    """
    name = f"{_SCHEME}{wanted.host}/{wanted.repository}"
    if wanted.digest:
        return [f"{name}@{wanted.digest}"]
    if not _VERSION.fullmatch(wanted.version):
        raise RegistryError(
            f"helm does not support the tag {wanted.version!r}; set a digest, or a tag that is a version such as v1.2.3"
        )
    return [name, "--version", wanted.version.replace("_", "+")]  # "+" is allowed in versions, but not in tags


def pulled_digest(printed: str, wanted: Reference) -> str:
    """Digest of the pulled manifest.

    Raises:
        RegistryError: it is not the requested one.
    """
    found = re.search(rf"^Pulled: {re.escape(str(wanted))}\nDigest: ({_DIGEST.pattern})$", printed, re.MULTILINE)
    if found is None:
        raise RegistryError("helm pulled another chart, or did not report its digest")
    if wanted.digest not in ("", found[1]):
        raise RegistryError(f"the registry returned a chart with the digest {found[1]} instead of {wanted.digest}")
    return found[1]


def problem(printed: str, wanted: Reference, *, directory: str, most: int) -> str:
    """Error with its remedy; `directory` has the credentials, and `most` is the maximum size of a chart in bytes."""
    reported = error_text(_NOT_SHOWN.sub("", printed), {})
    for pattern, remedy in _REMEDIES:
        if pattern.search(reported):
            return f"{reported}; {remedy.format(host=wanted.host, directory=directory, most=most)}"
    return reported
