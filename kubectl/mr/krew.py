"""The plugin as krew installs it: `python -m kubectl.mr.krew --download URL --homepage URL`.

krew wants an archive for each platform and a manifest that names each one's address and checksum. The archive holds the
plugin together with the Python that it was packed with, so that users need none; packing works for the platform that it
runs on only. So it is done on one machine of each platform, with the manifest handed on: the one that is found in the
output directory keeps the platforms that others have added.

Needs PyInstaller, and a Python with a shared library.
"""

import argparse
import hashlib
import importlib.util
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import yaml

from process.version import DISTRIBUTION, version

PLUGIN = "mr"
PROGRAM = "kubectl-mr"
_LICENSE = Path(__file__).parents[2] / "LICENSE"
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_NOT_NEEDED = (
    # Found beside the plugin where this project is worked on, and followed from imports that are not made.
    *("cel_expr_python", "google", "greenlet", "hypothesis", "kubernetes_asyncio", "matplotlib", "mypy", "numpy"),
    *("PIL", "playwright", "pytest", "setuptools", "tkinter", "uvloop"),
)


class PackingError(Exception):
    """The plugin can't be packed here; says what is missing."""


def this_platform() -> tuple[str, str]:
    """System and architecture as Go calls them. Raises PackingError: krew knows no such platform."""
    system, machine = platform.system().lower(), platform.machine().lower()
    if system not in {"linux", "darwin"} or machine not in _ARCHITECTURES:
        raise PackingError(f"cannot pack for {system}/{machine}; pack on Linux or macOS, amd64 or arm64")
    return system, _ARCHITECTURES[machine]


def entry(system: str, architecture: str, *, uri: str, sha256: str) -> dict[str, Any]:
    """How the manifest names an archive."""
    return {
        "selector": {"matchLabels": {"os": system, "arch": architecture}},
        "uri": uri,
        "sha256": sha256,
        "bin": f"{PROGRAM}/{PROGRAM}",
    }


def manifest(entries: list[dict[str, Any]], *, release: str, homepage: str) -> dict[str, Any]:
    """The manifest of the plugin, entries in a fixed order.

    Args:
        entries: of all platforms.
        release: such as `v0.1.0`.
        homepage: where people read about the plugin.
    """
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": PLUGIN},
        "spec": {
            "version": release,
            "homepage": homepage,
            "shortDescription": "See and steer ManagedResources",
            "description": (
                "Lists ManagedResources with their state, shows what belongs to one as a tree, compares it with what\n"
                "is there, says what to do about a failure, and suspends, resumes, creates and renders them.\n"
            ),
            "platforms": sorted(entries, key=lambda one: sorted(one["selector"]["matchLabels"].items())),
        },
    }


def merged(found: dict[str, Any] | None, new: dict[str, Any], *, release: str) -> list[dict[str, Any]]:
    """The entries of a release with a new one, in place of one for the same platform.

    Args:
        found: the manifest that is there already, perhaps of an older release, which counts as none.
        new: an entry.
        release: the one that is packed.
    """
    kept = found["spec"]["platforms"] if found and found["spec"]["version"] == release else []
    return [*(one for one in kept if one["selector"] != new["selector"]), new]


def pack(archive: Path) -> str:
    """Writes the archive and returns its SHA-256.

    Raises: PackingError: PyInstaller is missing or fails, or the program that it makes does not run.
    """
    if importlib.util.find_spec("PyInstaller") is None:
        raise PackingError("PyInstaller is missing; `make setup` makes an environment that has it")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        excluded = [f"--exclude-module={module}" for module in _NOT_NEEDED]
        where = [f"--{each}path={directory / each}" for each in ("dist", "work", "spec")]
        command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level=ERROR", "--onedir", "--strip"]
        command += [f"--name={PROGRAM}", "--collect-submodules=kubectl.mr.commands", *excluded, *where]
        command += [f"--copy-metadata={DISTRIBUTION}"]  # has the version
        _run([*command, str(Path(__file__).with_name("__main__.py"))])
        made = directory / "dist" / PROGRAM
        _run([str(made / PROGRAM), "get", "--help"])  # imports what talks to a cluster
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(_LICENSE, "LICENSE")
            tar.add(made, PROGRAM)
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    if done.returncode:
        raise PackingError(f"{command[0]} failed with code {done.returncode}:\n{done.stderr[-2000:]}")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kubectl.mr.krew", description="Pack the plugin for krew.")
    parser.add_argument("--download", required=True, metavar="URL", help="the folder that archives are downloaded from")
    parser.add_argument("--homepage", required=True, metavar="URL", help="where people read about the plugin")
    parser.add_argument("--output", type=Path, default=Path("dist"), metavar="DIRECTORY", help="default: dist")
    return parser


def main() -> None:
    arguments = parser().parse_args()
    release = f"v{version().removeprefix('v')}"
    try:
        system, architecture = this_platform()
        arguments.output.mkdir(parents=True, exist_ok=True)
        archive = arguments.output / f"{PROGRAM}-{release}-{system}-{architecture}.tar.gz"
        print(f"packing {archive} …", file=sys.stderr)
        sha256 = pack(archive)
    except PackingError as error:
        sys.exit(f"error: {error}")
    file = arguments.output / f"{PLUGIN}.yaml"
    found = yaml.safe_load(file.read_text()) if file.exists() else None
    new = entry(system, architecture, uri=f"{arguments.download.rstrip('/')}/{archive.name}", sha256=sha256)
    made = manifest(merged(found, new, release=release), release=release, homepage=arguments.homepage)
    file.write_text(yaml.safe_dump(made, sort_keys=False))
    print(f"wrote {file}; try it: kubectl krew install --manifest={file} --archive={archive}", file=sys.stderr)


if __name__ == "__main__":
    main()
