"""The program `helm`, with which gardenlets render charts: built once with Go, where gardenlets find it.

`helm/` is a Go module without any code of its own. A link in the directory of programs leads to the last build.
"""

import os
import re
from pathlib import Path

from localprocesses.go_program import GoProgram
from process.programs import built_programs

MODULE = Path(__file__).with_name("helm")
_PACKAGE = "helm.sh/helm/v3/cmd/helm"
_VERSION = re.compile(r"^require helm\.sh/helm/v3 (v\S+)", re.MULTILINE)
_NAME = "helm"


def find_or_build() -> Path:
    """Return the program; a build takes a minute or two, which is announced on stderr.

    Raises:
        LocalProcessError: the build failed.
    """
    program = GoProgram(
        name=_NAME,
        module=MODULE,
        sources=("go.mod", "go.sum"),
        package=_PACKAGE,
        flags=flags(),
        minutes="2 minutes",
        without_go=", or put helm 3 into a directory of PATH",
    )
    target = program.find_or_build()
    _link(target)
    return target


def version() -> str:
    found = _VERSION.search((MODULE / "go.mod").read_text())
    assert found
    return found[1]


def flags() -> tuple[str, ...]:
    """Flags, the same as in the Dockerfile: the same Go makes the same bytes."""
    return "-trimpath", f"-ldflags=-s -w -X helm.sh/helm/v3/internal/version.version={version()}"


def _link(target: Path) -> None:
    link = built_programs() / _NAME
    if link.is_symlink() and link.readlink() == target:
        return
    link.parent.mkdir(exist_ok=True)
    new = link.with_name(f".{_NAME}.{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.rename(link)
