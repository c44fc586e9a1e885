"""Local replacements for names that a pod knows in its cluster: paths of its files, and Services."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from localprocesses.confined import OutsideError, names_of
from localprocesses.local import HOST

TEMPORARY = "/tmp"  # noqa: S108 - of a container


@dataclass(frozen=True, slots=True)
class Here:
    """Local replacements for one pod.

    Attributes:
        root: directory that stands for the root of the container.
        mounts: paths in the container that are below it.
        namespace: namespace of the pod.
        ports: ports of Services in the namespace, by name.
    """

    root: Path
    mounts: Collection[str]
    namespace: str
    ports: Mapping[str, int]

    def path(self, path: str) -> Path:
        """Return the local path of a file of the container.

        Raises:
            OutsideError: it is not below the root.
        """
        return self.root.joinpath(*names_of(path.removeprefix("/")))

    def file(self, path: str, *, is_directory: bool = False) -> Path:
        """Return the local path of a mounted file; a directory may be a mountPath itself.

        Raises:
            OutsideError: it is not mounted.
        """
        if not any(path.startswith(f"{each}/") or (is_directory and path == each) for each in self.mounts):
            raise OutsideError("only a file below a mountPath may be named")
        return self.path(path)

    def temporary_file(self, path: str) -> Path:
        """Return the local path of a file that the program writes.

        Raises:
            OutsideError: it is not a temporary file.
        """
        if not path.startswith(f"{TEMPORARY}/"):
            raise OutsideError(f"only a file below {TEMPORARY} may be written")
        return self.path(path)

    def service(self, url: str, names: Collection[str]) -> str:
        """Return the local URL of one of these Services.

        Raises:
            OutsideError: it is another URL.
        """
        here = self.text(url)
        if here not in {f"https://{HOST}:{self.ports[each]}" for each in names if each in self.ports}:
            raise OutsideError(f"only a Service of {', '.join(names)} may be named, as https://NAME:PORT")
        return here

    def text(self, text: str) -> str:
        """Replace paths and Services in an argument or a file."""
        return self._services().sub(self._address, self._paths().sub(lambda found: f"{self.root}{found[1]}", text))

    def content(self, content: bytes) -> bytes:
        """Replace paths and Services in the content of a file, unless it is binary."""
        try:
            return self.text(content.decode()).encode()
        except UnicodeDecodeError:
            return content

    def _paths(self) -> re.Pattern[str]:
        mounts = sorted({*self.mounts, TEMPORARY}, key=len, reverse=True)
        return re.compile(rf"(?<![\w/.-])({'|'.join(map(re.escape, mounts))})(?=[/\s\"',]|$)")

    def _services(self) -> re.Pattern[str]:
        names, namespace = "|".join(map(re.escape, self.ports)) or "(?!)", re.escape(self.namespace)
        domain = rf"(?:\.{namespace}(?:\.svc(?:\.cluster\.local)?)?)?"
        return re.compile(rf"https://({names}){domain}(?::\d+)?(?=[/\s\"',;#]|$)")

    @property
    def _address(self) -> Callable[[re.Match[str]], str]:
        return lambda found: f"https://{HOST}:{self.ports[found[1]]}"
