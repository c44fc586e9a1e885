"""Charts from registries, pulled by the program `helm`: of bounded size, and with the digest that was named.

    chart = await registry.chart(reference)      # Chart(digest, archive)

A tag is pulled each time; what has been pulled of a digest is kept, as long as it is not much in all. A pull has the
network, but no plugins, no helpers for credentials, and bounded memory, time and size (`program`).

Credentials are in a file of Docker, as in a Secret of the type kubernetes.io/dockerconfigjson. `helm` reads it at each
pull, and gives them to their registry only. It would do without TLS if the other side does not know TLS, but not if it
is given a file of authorities; so only a registry on this computer is asked without.
"""

import asyncio
import os
import re
import ssl
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from agent.gardenlet.charts.program import MIB, NOWHERE, HelmError, Limits, found, in_memory, path_of, run
from agent.gardenlet.charts.rules.registries import Reference, RegistryError, arguments, problem, pulled_digest

LIMITS = Limits(seconds=60.0, cpu_seconds=10, memory=192 * MIB, output=MIB, file=8 * MIB, has_network=True)
_DIRECTORY = "DOCKER_CONFIG"
"""The variable of the environment that names the directory of the file of credentials."""
_CREDENTIALS = "config.json"
_KEPT = 16 * MIB
_AT_ONCE = 2
_MEMORY = "/dev/shm"  # noqa: S108 - in it, a directory of our own is made
_PROXIES = ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
_NO_PROXY = "http://127.0.0.1:1"
_AUTHORITY = re.compile(r"[0-9a-f]{8}\.\d+")
"""Names of files in a directory of authorities, which others also have by other names."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Attributes: digest: of its manifest."""

    digest: str
    archive: bytes


def with_credentials() -> "Registry":
    """Those of the directory that a variable of the environment names, if there is one."""
    return Registry(credentials=os.environ.get(_DIRECTORY, ""))


class Registry:
    """What registries have.

    Args:
        program: the file of `helm`; None: looked for at each use.
        kept: bytes of archives that are kept.
        credentials: the directory with the file of credentials; empty: there are none.
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
        """Raises RegistryError."""
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
        """Raises HelmError, OSError, RegistryError."""
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
    """What has no TLS, as a place that a registry refers to may, leads nowhere."""
    return {"HTTP_PROXY": _NO_PROXY} | {name: os.environ[name] for name in _PROXIES if name in os.environ}


def _authorities() -> bytes:
    """Those that this computer trusts, or its environment names. Raises OSError, RegistryError: there are none."""
    paths = ssl.get_default_verify_paths()
    files = [Path(paths.cafile)] if paths.cafile else []
    if paths.capath and (not files or paths.openssl_capath_env in os.environ):
        files += [each for each in Path(paths.capath).iterdir() if _AUTHORITY.fullmatch(each.name)]
    if found := b"\n".join(each.read_bytes() for each in files):
        return found
    raise RegistryError(f"no authority is trusted: {paths.openssl_cafile_env} has to name a file with some")
