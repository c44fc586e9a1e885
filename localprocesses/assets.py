"""The binaries of a cluster: found, or else built once.

In this order: the directory that KUBEBUILDER_ASSETS names (as setup-envtest leaves it; etcd and kube-apiserver have
to be there, the others make the cluster better), the user's cache directory, a build with Go into that directory.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from localprocesses import build
from localprocesses.errors import LocalProcessError
from localprocesses.versions import NEWEST

_VARIABLE = "KUBEBUILDER_ASSETS"
_FIRST_WITH_GATEWAY = (3, 6)
_VERSION_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Assets:
    """What can be run; None is a feature that this cluster does without."""

    etcd: Path
    apiserver: Path
    controller_manager: Path | None
    scheduler: Path | None
    kwok: Path | None

    def etcd_has_gateway(self) -> bool:
        """Whether etcd takes JSON, too, on a Unix socket; before 3.6 it ends if it is to."""
        try:
            answer = subprocess.run(
                [self.etcd, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False
            ).stdout
        except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
            return True  # it fails when it is started, if at all
        version = re.search(r"etcd Version: (\d+)\.(\d+)", answer)
        return version is None or (int(version[1]), int(version[2])) >= _FIRST_WITH_GATEWAY


def find_or_build(release: str | None = None) -> Assets:
    """Args: release: of Kubernetes, which is built then; without it, what the variable names, or the newest."""
    named = os.environ.get(_VARIABLE)
    if named and release is None:
        return _in_directory(Path(named).expanduser(), source=f"{_VARIABLE}={named}")
    directory = build.cached_or_built(release or NEWEST)
    return _in_directory(directory, source=f"the cache {directory}")


def _in_directory(directory: Path, *, source: str) -> Assets:
    def optional(name: str) -> Path | None:
        path = directory.absolute() / name
        return path if path.is_file() and os.access(path, os.X_OK) else None

    def required(name: str) -> Path:
        path = optional(name)
        if path is None:
            raise LocalProcessError(
                f"{source}: there is no program {name} in it; name a directory with etcd and kube-apiserver, or "
                f"unset {_VARIABLE} to have them built"
            )
        return path

    return Assets(
        etcd=required("etcd"),
        apiserver=required("kube-apiserver"),
        controller_manager=optional("kube-controller-manager"),
        scheduler=optional("kube-scheduler"),
        kwok=optional("kwok"),
    )
