"""Charts from registries, pulled by the program `helm`: of limited size, and with a verified digest.

    chart = await registry.chart(reference)      # Chart(digest, archive)

A tag is pulled each time; archives pulled by digest are cached up to a total size. A pull has network access, but no
plugins, no credential helpers, and limited memory, time and size (`program`).

Credentials are in a Docker config file, as in a Secret of type kubernetes.io/dockerconfigjson. `helm` reads it at
each pull, and sends them to their registry only. It would fall back to plain HTTP if the server does not support TLS,
but not if it has a CA file; so only a registry on this computer is contacted without TLS.
"""

import asyncio
import os
import re
import ssl
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from agent.gardenlet.common.charts.program import MIB, NOWHERE, HelmError, Limits, found, in_memory, path_of, run
from agent.gardenlet.common.charts.rules.registries import Reference, RegistryError, arguments, problem, pulled_digest

LIMITS = Limits(seconds=60.0, cpu_seconds=10, memory=192 * MIB, output=MIB, file=8 * MIB, has_network=True)
_DIRECTORY = "DOCKER_CONFIG"
"""Environment variable with the directory of the credentials file."""
_CREDENTIALS = "config.json"
_KEPT = 16 * MIB
_AT_ONCE = 2
_MEMORY = "/dev/shm"  # noqa: S108 - a private directory is created in it
_PROXIES = ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
_NO_PROXY = "http://127.0.0.1:1"
_AUTHORITY = re.compile(r"[0-9a-f]{8}\.\d+")
"""Hash names in a CA directory: links to certificates, which have other names, too."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A pulled chart.

    Attributes:
        digest: of its manifest.
    """

    digest: str
    archive: bytes


def with_credentials() -> "Registry":
    """Create a Registry with the credentials of the environment, if any."""
    return Registry(credentials=os.environ.get(_DIRECTORY, ""))


class Registry:
    """Client of registries.

    Args:
        program: the file of `helm`; None to look it up at each use.
        kept: maximum size of cached archives, in bytes.
        credentials: directory with the credentials file; empty if none.
    """

    def __init__(
        self,
        *,
        program: Path | None = None,
        kept: int = _KEPT,
        credentials: str | Path = "",
        limits: Limits = LIMITS,
    ) -> None:
        self.program = program
        self._most = kept
        self._credentials = credentials
        self._limits = limits
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._archives: OrderedDict[str, bytes] = OrderedDict()

    async def chart(self, reference: Reference) -> Chart:
        """Return a chart.

        Raises:
            RegistryError: it can't be pulled.
        """
        if (archive := self._archives.get(reference.digest)) is not None:
            self._archives.move_to_end(reference.digest)
            return Chart(reference.digest, archive)
        try:
            async with self._places:
                chart = await self._pull(reference)
        except (HelmError, OSError, RegistryError) as error:
            raise RegistryError(f"{reference}: {error}") from error
        self._keep(chart)
        return chart

    def _keep(self, chart: Chart) -> None:
        self._archives[chart.digest] = chart.archive
        self._archives.move_to_end(chart.digest)
        while sum(map(len, self._archives.values())) > self._most:
            self._archives.popitem(last=False)

    async def _pull(self, reference: Reference) -> Chart:
        """Pull a chart.

        Raises:
            HelmError: `helm` can't be run.
            OSError: a file can't be read or written.
            RegistryError: the registry does not provide the chart.
        """
        trusted = b"" if reference.is_near else await asyncio.to_thread(_authorities)
        with (
            in_memory(trusted) as authorities,
            tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as place,
        ):
            tls = ["--plain-http"] if reference.is_near else ["--ca-file", path_of(authorities)]
            credentials = Path(self._credentials or NOWHERE) / _CREDENTIALS
            done = await run(
                self.program or found(),
                [
                    *("pull", *arguments(reference), *tls),
                    *("--registry-config", str(credentials), "--destination", place),
                ],
                limits=self._limits,
                files=(authorities,),
                environment=_proxies(),
            )
            if done.code:
                directory = str(self._credentials or f"the directory that {_DIRECTORY} names")
                raise RegistryError(problem(done.errors, reference, directory=directory, most=self._limits.file))
            digest = pulled_digest(done.errors, reference)
            return Chart(digest, await asyncio.to_thread(_only_file, Path(place)))


def _only_file(place: Path) -> bytes:
    (file,) = place.iterdir()
    return file.read_bytes()


def _proxies() -> dict[str, str]:
    """Proxy variables; plain HTTP, to which a registry may redirect, goes to an unreachable proxy."""
    return {"HTTP_PROXY": _NO_PROXY} | {name: os.environ[name] for name in _PROXIES if name in os.environ}


def _authorities() -> bytes:
    """Return the CAs that the system trusts, or its environment names.

    Raises:
        OSError: they can't be read.
        RegistryError: there are none.
    """
    paths = ssl.get_default_verify_paths()
    files = [Path(paths.cafile)] if paths.cafile else []
    if paths.capath and (not files or paths.openssl_capath_env in os.environ):
        files += [each for each in Path(paths.capath).iterdir() if _AUTHORITY.fullmatch(each.name)]
    if found := b"\n".join(each.read_bytes() for each in files):
        return found
    raise RegistryError(f"no CA is trusted; set {paths.openssl_cafile_env} to a file with CA certificates")
