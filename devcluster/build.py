"""Builds the control plane from Go modules, once a user: the only step that needs Go and the network.

`controlplane/` is a Go module whose two programs become five: `controlplane` is etcd, kube-apiserver,
kube-controller-manager or kube-scheduler, depending on the name it is called by, and `kwok` is itself. Its go.sum
pins every byte. The result is kept in the cache directory under a hash of all that it is made of, put there by one
rename, so what is found there is complete. Who comes while another builds waits for the result.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from devcluster.errors import DevclusterError
from devcluster.state import locked

MODULE = Path(__file__).with_name("controlplane")
_SOURCES = ("go.mod", "go.sum", "main.go", "kwok/main.go")
_PROGRAMS = (".", "./kwok")
_NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_VERSION = "k8s.io/component-base/version"
_FLAGS = (
    "-trimpath",
    f"-ldflags=-s -w -X {_VERSION}.gitVersion=v1.36.3 -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=36",
)
_REMEDY = (
    "The control plane is built once with Go (1.26 or newer; it takes about 5 minutes, 2 GB of memory, and 5 GB of "
    "disk for Go's own caches). Install Go, or set KUBEBUILDER_ASSETS to a directory that has etcd and "
    "kube-apiserver in it."
)


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "resource-manager-devcluster"


def cached_or_built() -> Path:
    """The directory with all programs; builds them if need be, which takes minutes and tells so on stderr.

    Raises DevclusterError if Go is missing, too old, or fails.
    """
    cache = cache_directory()
    target = cache / _fingerprint()
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with _locked_with_notice(cache / f"{target.name}.lock"):
        if not target.exists():
            _build(target)
    return target


def _fingerprint() -> str:
    digest = hashlib.sha256(repr(_FLAGS).encode())
    for source in _SOURCES:
        digest.update((MODULE / source).read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _locked_with_notice(lock: Path) -> Iterator[None]:
    with locked(lock, blocking=False) as free:
        if free:
            yield
            return
    print("waiting for another process that builds the control plane", file=sys.stderr, flush=True)
    with locked(lock):
        yield


def _build(target: Path) -> None:
    if shutil.which("go") is None:
        raise DevclusterError(f"Go is not installed. {_REMEDY}")
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        with Progress(sys.stderr.isatty()) as progress:
            progress.phase("looking for modules")
            progress.total = _count_packages(progress)
            progress.phase("compiling")
            output = f"-o={scratch}{os.sep}"
            _go(["build", "-v", *_FLAGS, output, *_PROGRAMS], progress)
        for name in _NAMES:
            (scratch / name).symlink_to("controlplane")
        scratch.chmod(0o755)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _count_packages(progress: "Progress") -> int:
    """How many packages the programs consist of; fetches the modules they come from."""
    return len(_go(["list", "-deps", *_PROGRAMS], progress))


def _go(arguments: list[str], progress: "Progress") -> list[str]:
    """Runs Go in the module and gives the lines of its output; its messages move the progress on."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    messages: deque[str] = deque(maxlen=15)
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            ["go", *arguments], cwd=MODULE, env=environment, stdout=output, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr is not None
        try:
            for line in process.stderr:
                messages.append(line.rstrip())
                progress.step()
        except BaseException:
            process.kill()
            raise
        if process.wait():
            raise DevclusterError(f"'go {arguments[0]}' failed:\n  " + "\n  ".join(messages) + f"\n{_REMEDY}")
        output.seek(0)
        return output.read().splitlines()


class Progress:
    """Tells on stderr how far a build is: one line redrawn on a terminal, elsewhere a line every 15 seconds."""

    def __init__(self, terminal: bool) -> None:
        self.total = 0
        self._terminal = terminal
        self._phase = ""
        self._steps = 0
        self._start = time.monotonic()
        self._done = threading.Event()
        self._drawing = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Self:
        self._show("building the control plane; this happens once and takes about 5 minutes\n")
        self._drawing.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._done.set()
        self._drawing.join()
        if self._terminal:
            self._show("\r\033[K")
        if kind is None:
            self._show(f"built the control plane in {self._elapsed()}\n")

    def phase(self, name: str) -> None:
        self._phase, self._steps = name, 0

    def step(self) -> None:
        self._steps += 1

    def line(self) -> str:
        if not self.total:
            return f"{self._elapsed()}  {self._phase}: {self._steps} fetched"
        return f"{self._elapsed()}  {self._phase}: {min(self._steps, self.total)} of up to {self.total} packages"

    def _draw(self) -> None:
        while not self._done.wait(0.5 if self._terminal else 15):
            self._show(f"\r\033[K{self.line()}" if self._terminal else f"{self.line()}\n")

    def _elapsed(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        return f"{minutes}:{seconds:02}"

    @staticmethod
    def _show(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
