"""The program `helm`, with which gardenlets render charts: built once with Go, where these find it.

`helm/` is a Go module without any code of its own, whose go.sum pins every byte. The result is kept beside the control
plane under a hash of what it is made of; a link in the directory of programs leads to the one that was built last.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from localprocesses.local import LocalProcessError
from localprocesses.state import locked
from process.programs import built_programs, cache_directory

MODULE = Path(__file__).with_name("helm")
_SOURCES = ("go.mod", "go.sum")
_PACKAGE = "helm.sh/helm/v3/cmd/helm"
_VERSION = re.compile(r"^require helm\.sh/helm/v3 (v\S+)", re.MULTILINE)
_NAME = "helm"
_SHOWN = 15


def find_or_build() -> Path:
    """The program; to build it takes a minute or two, and says so on stderr. Raises LocalProcessError."""
    target = cache_directory() / f"{_NAME}-{_fingerprint()}" / _NAME
    target.parent.parent.mkdir(parents=True, exist_ok=True)
    with locked(target.parent.with_suffix(".lock")):
        if not target.exists():
            _build(target)
        _link(target)
    return target


def version() -> str:
    found = _VERSION.search((MODULE / "go.mod").read_text())
    assert found
    return found[1]


def flags() -> tuple[str, ...]:
    """Those of the Dockerfile, too: the same Go makes the same bytes."""
    return "-trimpath", f"-ldflags=-s -w -X helm.sh/helm/v3/internal/version.version={version()}"


def _fingerprint() -> str:
    digest = hashlib.sha256(repr(flags()).encode())
    for source in _SOURCES:
        digest.update((MODULE / source).read_bytes())
    return digest.hexdigest()[:16]


def _build(target: Path) -> None:
    if shutil.which("go") is None:
        raise LocalProcessError("Go is not installed: install Go 1.26 or newer, or put helm 3 into a directory of PATH")
    print("building helm; this happens once and takes about 2 minutes", file=sys.stderr, flush=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.parent.name}.", dir=target.parent.parent))
    try:
        done = subprocess.run(
            ["go", "build", *flags(), f"-o={scratch / _NAME}", _PACKAGE],
            cwd=MODULE,
            env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = "\n  ".join(done.stderr.splitlines()[-_SHOWN:])
            raise LocalProcessError(f"'go build' of helm failed:\n  {said}")
        scratch.chmod(0o755)
        scratch.rename(target.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _link(target: Path) -> None:
    link = built_programs() / _NAME
    if link.is_symlink() and link.readlink() == target:
        return
    link.parent.mkdir(exist_ok=True)
    new = link.with_name(f".{_NAME}.{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.rename(link)
