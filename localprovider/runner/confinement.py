"""Files that the process of a pod may use: its own directory, and those that its program needs to run.

Paths in its arguments grant no access: some arguments are texts of tenants.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from localprocesses.landlock import Confinement
from process.programs import built_programs

_SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run/systemd/resolve", "/sys", "/usr")
_LOADER = re.compile(rb"/[!-~]*/ld-[!-~]+")
_HEADER = 4096
_HELM = "helm"
"""Program that gardenlets run."""
_MEMORY = ("/dev/shm",)  # noqa: S108 - directory of charts that gardenlets pull
_PYTHON = (sys.prefix, sys.base_prefix, str(Path(__file__).resolve().parents[2]))


def confinement(command: Sequence[str], *, own: Path, reads: Sequence[Path] = ()) -> Confinement:
    """Return the confinement of a process; `own` is the directory of the pod, `reads` are additional readable files."""
    is_python = sys.executable in command
    python = _PYTHON if is_python else ()
    return Confinement(
        writes=(str(own), "/dev/null", *(_MEMORY if is_python else ())),
        reads=(*_SYSTEM, *python, *map(str, reads)),
        runs=tuple(_runs(command)),
    )


def _runs(command: Sequence[str]) -> Iterator[str]:
    programs = [command[0], *([sys.executable, _helm()] if sys.executable in command else [])]
    for each in programs:
        if found := shutil.which(each):
            yield found
            yield from _loader(os.path.realpath(found))


def _helm() -> str:
    built = built_programs() / _HELM
    return str(built) if built.exists() else _HELM


@cache
def _loader(program: str) -> tuple[str, ...]:
    """Dynamic loader of a program; none if it is statically linked."""
    with Path(program).open("rb") as file:
        found = _LOADER.search(file.read(_HEADER))
    return (found[0].decode(),) if found else ()
