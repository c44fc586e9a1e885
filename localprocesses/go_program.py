"""Further programs, each built once with Go from a module here, whose go.sum pins every byte.

The result is kept next to the control plane under a hash of its inputs; it is put there by one rename, so results there
are complete.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from localprocesses.local import LocalProcessError
from localprocesses.state import locked
from process.programs import cache_directory

_SHOWN = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class GoProgram:
    """A program to build.

    Attributes:
        module: directory of the module.
        sources: files of the module that the program depends on.
        package: package of the program.
        minutes: duration of the build, for users.
        without_go: alternative to the build, for users.
    """

    name: str
    module: Path
    sources: tuple[str, ...]
    package: str
    flags: tuple[str, ...]
    minutes: str
    without_go: str = ""

    def find_or_build(self) -> Path:
        """Return the program, built if necessary.

        Raises:
            LocalProcessError: the build failed.
        """
        target = cache_directory() / f"{self.name}-{self._fingerprint()}" / self.name
        target.parent.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.parent.with_suffix(".lock")):
            if not target.exists():
                self._build(target)
        return target

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(repr(self.flags).encode())
        for source in self.sources:
            digest.update((self.module / source).read_bytes())
        return digest.hexdigest()[:16]

    def _build(self, target: Path) -> None:
        if shutil.which("go") is None:
            raise LocalProcessError(f"Go is not installed: install Go 1.26 or newer{self.without_go}")
        reported = f"building {self.name}; this happens once and takes about {self.minutes}"
        print(reported, file=sys.stderr, flush=True)
        scratch = Path(tempfile.mkdtemp(prefix=f"{target.parent.name}.", dir=target.parent.parent))
        try:
            done = subprocess.run(
                ["go", "build", *self.flags, f"-o={scratch / self.name}", self.package],
                cwd=self.module,
                env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                shown = "\n  ".join(done.stderr.splitlines()[-_SHOWN:])
                raise LocalProcessError(f"'go build' of {self.name} failed:\n  {shown}")
            scratch.chmod(0o755)
            scratch.rename(target.parent)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
