"""The binaries of a cluster: found, or else built once.

In this order: the directory that KUBEBUILDER_ASSETS names (as setup-envtest leaves it; etcd and kube-apiserver have to
be there, the others make the cluster better), the user's cache directory, a build with Go into that directory, once a
user and release: the only step that needs Go and the network.

`controlplane/` is a Go module whose two programs become five: `controlplane` is etcd, kube-apiserver,
kube-controller-manager or kube-scheduler, depending on the name it is called by, and `kwok` is itself. Its go.sum pins
every byte. Other releases of Kubernetes are built from the same main program, in a module that is made for them
(`versions`), and get the same kwok. Each result is kept in the cache directory under a hash of all its inputs, put
there by one rename, so results there are complete. Other processes wait for the result of a running build.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from localprocesses.local import LocalProcessError
from localprocesses.state import locked_with_notice
from localprocesses.supervisor import end_with_parent
from localprocesses.versions import NEWEST, go_mod
from process.programs import cache_directory

__all__ = [
    "Assets",
    "cache_directory",
    "cached_or_built",
    "demand_controllers",
    "find",
    "find_or_build",
    "is_built",
    "percent",
]

MODULE = Path(__file__).with_name("controlplane")
_SOURCES = ("go.mod", "go.sum", "main.go", "kwok/main.go")
_MAIN = "main.go"
_KWOK = "kwok"
_NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_VERSION = "k8s.io/component-base/version"
_REMEDY = (
    "The control plane is built once with Go (1.26 or newer; it takes about 5 minutes, 2 GB of memory, and 5 GB of "
    "disk for Go's own caches). Install Go, or set KUBEBUILDER_ASSETS to a directory that has etcd and "
    "kube-apiserver in it."
)
_VARIABLE = "KUBEBUILDER_ASSETS"
_FIRST_WITH_GATEWAY = (3, 6)
_AUTHORIZATION_APIS = (((1, 32), "v1"), ((1, 30), "v1beta1"))
"""Version of the AuthorizationConfiguration by the first release of Kubernetes with it."""
_VERSION_SECONDS = 30.0
_LOOK_SECONDS, _LOOKS_OF_A_LINE = 0.5, 30


@dataclass(frozen=True, slots=True)
class Assets:
    """Available programs; None is a feature that this cluster does without."""

    etcd: Path
    apiserver: Path
    controller_manager: Path | None
    scheduler: Path | None
    kwok: Path | None

    def etcd_has_gateway(self) -> bool:
        """Whether etcd also serves JSON on a Unix socket; before 3.6 it would end."""
        answer = _version_of(self.etcd)
        version = re.search(r"etcd Version: (\d+)\.(\d+)", answer)
        return version is None or (int(version[1]), int(version[2])) >= _FIRST_WITH_GATEWAY

    def authorization_api(self) -> str:
        """Version of an AuthorizationConfiguration that the API server reads; empty if it reads none."""
        version = re.search(r"Kubernetes v(\d+)\.(\d+)", _version_of(self.apiserver))
        found = (0, 0) if version is None else (int(version[1]), int(version[2]))
        return next((api for first, api in _AUTHORIZATION_APIS if found >= first), "")


def _version_of(program: Path) -> str:
    """Output of the version; empty if the program can't be run: its start will fail."""
    command = [str(program), "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout


def find_or_build(release: str | None = None) -> Assets:
    """Find the programs, or build those of `release`; without it, use those of the variable, or the newest."""
    named = os.environ.get(_VARIABLE)
    if named and release is None:
        return _in_directory(Path(named).expanduser(), source=f"{_VARIABLE}={named}")
    directory = cached_or_built(release or NEWEST)
    return _in_directory(directory, source=f"the cache {directory}")


def find(release: str | None = None) -> Assets | None:
    """Find the programs without building them; None if there are none yet."""
    if (os.environ.get(_VARIABLE) and release is None) or is_built(release or NEWEST):
        return find_or_build(release)
    return None


def is_built(release: str) -> bool:
    return _target(release).exists()


def percent(release: str) -> int:
    """Progress of a running build, of any process."""
    try:
        return int(_progress_file(_target(release)).read_text() or 0)
    except (FileNotFoundError, ValueError):
        return 0


def _target(release: str) -> Path:
    return cache_directory() / _fingerprint(release)


def _progress_file(target: Path) -> Path:
    return target.with_suffix(".progress")


def demand_controllers(found: Assets) -> None:
    """Check that there is a controller manager: without it, a gardenlet gets no certificate, and no Shoot works.

    Raises:
        LocalProcessError: there is none.
    """
    if found.controller_manager is None:
        raise LocalProcessError(
            f"{found.apiserver.parent} lacks kube-controller-manager, which seeds and Shoots need; add it, or unset "
            f"{_VARIABLE} to build all programs"
        )


def _in_directory(directory: Path, *, source: str) -> Assets:
    def optional(name: str) -> Path | None:
        path = directory.absolute() / name
        return path if path.is_file() and os.access(path, os.X_OK) else None

    def required(name: str) -> Path:
        path = optional(name)
        if path is None:
            raise LocalProcessError(
                f"{source}: program {name} is missing; set it to a directory with etcd and kube-apiserver, or unset "
                f"{_VARIABLE} to build them"
            )
        return path

    return Assets(
        etcd=required("etcd"),
        apiserver=required("kube-apiserver"),
        controller_manager=optional("kube-controller-manager"),
        scheduler=optional("kube-scheduler"),
        kwok=optional("kwok"),
    )


@dataclass(frozen=True, slots=True)
class Module:
    """Directory and arguments of `go build`."""

    directory: Path
    flags: tuple[str, ...]
    programs: tuple[str, ...]


def cached_or_built(release: str = NEWEST) -> Path:
    """Return the directory with all programs; a build takes minutes, which is announced on stderr.

    Raises:
        LocalProcessError: Go is missing, too old, or fails.
    """
    target = _target(release)
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    kwok = None if release == NEWEST else cached_or_built() / _KWOK
    with locked_with_notice(target.with_suffix(".lock"), "waiting for another process that builds the control plane"):
        if not target.exists():
            _build(target, release, kwok)
    return target


def _flags(release: str) -> tuple[str, ...]:
    major, minor, _ = release.split(".")
    stamped = {"gitVersion": f"v{release}", "gitMajor": major, "gitMinor": minor}
    flags = (
        "-trimpath",
        " ".join(("-ldflags=-s -w", *(f"-X {_VERSION}.{name}={text}" for name, text in stamped.items()))),
    )
    # Without the cloud providers of old releases: there is no cloud here.
    return flags if release == NEWEST else (*flags, "-tags=providerless", "-mod=mod")


def _fingerprint(release: str) -> str:
    digest = hashlib.sha256(repr(_flags(release)).encode())
    for source in _SOURCES if release == NEWEST else (_MAIN,):
        digest.update((MODULE / source).read_bytes())
    return digest.hexdigest()[:16]


def _build(target: Path, release: str, kwok: Path | None) -> None:
    """Build the programs, and also kwok unless it is given."""
    if shutil.which("go") is None:
        raise LocalProcessError(f"Go is not installed. {_REMEDY}")
    for remains in target.parent.glob(f"{target.name}.*/"):
        shutil.rmtree(remains, ignore_errors=True)  # of a build that was killed
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    note = _progress_file(target)
    try:
        with Progress(release, sys.stderr.isatty(), note) as progress, _module(release, progress) as module:
            progress.phase("looking for modules")
            total = _count_packages(module, progress)
            progress.phase("compiling", total)
            output = f"-o={scratch}{os.sep}"
            _go(["build", "-v", *module.flags, output, *module.programs], module.directory, progress)
        for name in _NAMES:
            (scratch / name).symlink_to("controlplane")
        if kwok is not None:
            (scratch / _KWOK).hardlink_to(kwok)
        scratch.chmod(0o755)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        note.unlink(missing_ok=True)


@contextlib.contextmanager
def _module(release: str, progress: "Progress") -> Iterator[Module]:
    """Return the pinned module, or one that is made for the release."""
    if release == NEWEST:
        yield Module(MODULE, _flags(release), (".", f"./{_KWOK}"))
        return
    target = _target(release)  # beside it, the next build finds what is left of one that was killed
    with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent) as name:
        directory = Path(name)
        progress.phase("looking for the release")
        found = _go(["list", "-m", "-json", f"k8s.io/kubernetes@v{release}"], directory, progress)
        own = _go(["mod", "edit", "-json", json.loads("\n".join(found))["GoMod"]], directory, progress)
        (directory / "go.mod").write_text(go_mod(release, json.loads("\n".join(own))))
        shutil.copy(MODULE / _MAIN, directory)
        yield Module(directory, _flags(release), (".",))


def _count_packages(module: Module, progress: "Progress") -> int:
    """Number of packages to compile, since Go's cache lacks them; fetches their modules."""
    stale = "-f={{if .Stale}}{{.ImportPath}}{{end}}"
    return len(_go(["list", "-deps", *module.flags, stale, *module.programs], module.directory, progress))


def _go(arguments: list[str], directory: Path, progress: "Progress") -> list[str]:
    """Run Go in the directory, and return the lines of its output; its messages advance the progress."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    messages: deque[str] = deque(maxlen=15)
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            ["go", *arguments],
            cwd=directory,
            env=environment,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - it only calls prctl
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
            raise LocalProcessError(f"'go {arguments[0]}' failed:\n  " + "\n  ".join(messages) + f"\n{_REMEDY}")
        output.seek(0)
        return output.read().splitlines()


class Progress:
    """Shows the progress of a build on stderr: one line redrawn on a terminal, elsewhere a line every 15 seconds.

    Writes the percentage to the file `note`, for other processes.
    """

    def __init__(self, release: str, terminal: bool, note: Path | None = None) -> None:
        self._release, self._note = release, note
        self._terminal = terminal
        self._phase = ""
        self._total: int | None = None
        self._steps = 0
        self._start = time.monotonic()
        self._done = threading.Event()
        self._drawing = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Self:
        what = f"the control plane of Kubernetes {self._release}"
        self._show(f"building {what}; this happens once and takes about 5 minutes\n")
        self._drawing.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._done.set()
        self._drawing.join()
        if self._terminal:
            self._show("\r\033[K")
        if kind is None:
            self._show(f"built the control plane in {self._elapsed()}\n")

    def phase(self, name: str, total: int | None = None) -> None:
        self._phase, self._total, self._steps = name, total, 0

    def step(self) -> None:
        self._steps += 1

    def percent(self) -> int:
        """Compiled packages; 100 only when the programs are there."""
        return min(99, 100 * self._steps // self._total) if self._total else 0

    def line(self) -> str:
        if self._total is None:
            return f"{self._elapsed()}  {self._phase}: {self._steps} fetched"
        if self._steps >= self._total:
            return f"{self._elapsed()}  linking: all {self._total} packages are compiled"
        return f"{self._elapsed()}  {self._phase}: {self._steps} of {self._total} packages"

    def _draw(self) -> None:
        looks = 0
        while not self._done.wait(_LOOK_SECONDS):
            looks += 1
            if self._note is not None:
                self._note.write_text(str(self.percent()))
            if self._terminal:
                self._show(f"\r\033[K{self.line()}")
            elif looks % _LOOKS_OF_A_LINE == 0:
                self._show(f"{self.line()}\n")

    def _elapsed(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        return f"{minutes}:{seconds:02}"

    @staticmethod
    def _show(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def main() -> int:
    """Build a release: `python -m localprocesses.assets 1.35.8`."""
    try:
        find_or_build(sys.argv[1])
    except LocalProcessError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
