"""Environments with the libraries of a release, and without this checkout."""

import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from kit.packages import PROJECT
from release.__main__ import Library, library


def environment(directory: Path, *libraries: Library) -> Path:
    """The interpreter of one with the wheels and their dependencies."""
    for each in libraries:
        library(each, PROJECT, directory)
    wheels = [str(wheel) for wheel in directory.glob("*.whl")]
    assert len(wheels) == len(libraries)
    venv.create(directory / "environment", symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(directory / "environment")}))
    # Only the folder is added: *.pth files in it, such as that of an editable installation, have no effect.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    python = directory / "environment" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install"]
    subprocess.run([*pip, "--quiet", "--no-deps", "--no-index", *wheels], check=True, timeout=120)
    return python


def program_of(page: str, *, most_lines: int) -> str:
    """The program on a page of the documentation, of at most so many lines besides imports."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", (PROJECT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)
    body = [line for line in code.splitlines() if line and not line.startswith(("import ", "from "))]
    assert len(body) <= most_lines
    return str(code)
