"""Releases of Kubernetes that can be built, and the Go module of a release.

The newest is pinned byte by byte in `controlplane/`. The module of any other release has the same main program and
requires Kubernetes alone, so it is built of the versions that Kubernetes was released with: its own go.mod names them
all. Go's checksum database verifies the bytes.
"""

import re
from collections.abc import Mapping
from typing import Any

from localprocesses.local import LocalProcessError

NEWEST = "1.36.3"
"""Release in `controlplane/go.mod`."""
PATCHES = {
    "1.28": "1.28.15",
    "1.29": "1.29.15",
    "1.30": "1.30.14",
    "1.31": "1.31.4",
    "1.32": "1.32.2",
    "1.33": "1.33.13",
    "1.34": "1.34.4",
    "1.35": "1.35.8",
    "1.36": NEWEST,
}
"""Release by minor version, oldest first. Some releases lack staging modules."""
OFFERED = ("1.29.9", "1.30.5", "1.31.1", *PATCHES.values())
"""Releases that are built if the owner of a Shoot chooses them: those of the CloudProfile `local`, and `PATCHES`."""
_VERSION = re.compile(r"v?(\d+\.\d+)(\.\d+)?")
_WITHOUT_VERSION = "v0.0.0"
"""Version of staging modules in the go.mod of Kubernetes; they are published as v0.MINOR.PATCH."""


def release(text: str) -> str:
    """Return the release to build, as `1.30.14`, for `1.30` or `1.30.4`, with or without a `v`.

    Raises:
        LocalProcessError: it is no version, or none of those that are supported.
    """
    found = _VERSION.fullmatch(text)
    if found is None or found[1] not in PATCHES:
        oldest, *_, newest = PATCHES
        raise LocalProcessError(f"{text!r} is not a supported Kubernetes version; use one from {oldest} to {newest}")
    return f"{found[1]}{found[2]}" if found[2] else PATCHES[found[1]]


def known(text: str) -> str:
    """Return the release, if it is one of `OFFERED`.

    Raises:
        LocalProcessError: it is another one.
    """
    found = release(text)
    if found not in OFFERED:
        raise LocalProcessError(f"{text!r} is not built here; use one of {', '.join(OFFERED)}")
    return found


def go_mod(release: str, own: Mapping[str, Any]) -> str:
    """The go.mod of the control plane of a release, to which Go adds imported modules, in the versions of `own`.

    `own` is Kubernetes' own go.mod, as printed by `go mod edit -json`.
    """
    published = f"v0.{release.removeprefix('1.')}"
    staging = [each["Path"] for each in own["Require"] if each["Version"] == _WITHOUT_VERSION]
    lines = [
        "module resource-manager.local/devcluster/controlplane",
        f"go {own['Go']}",
        f"require k8s.io/kubernetes v{release}",
        *(f"replace {path} => {path} {published}" for path in staging),
    ]
    return "\n".join(lines) + "\n"
