"""The plugins of kubectl as single files with Python in them, and for krew: `python -m release.plugins`.

One file is all three plugins and their completions: its name, or that of a link to it, selects the program. So
PyInstaller runs once. krew has an archive for each platform, and a manifest for each plugin that names the address and
the checksum of the archives.

Packing only works for the platform that it runs on. So it is done on one machine of each platform, with the manifests
handed on: those in the output directory keep the platforms that others have added.
"""

import argparse
import hashlib
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gardener.distribution import DISTRIBUTION
from release.oci import compressed

PROJECT = Path(__file__).resolve().parents[1]
PROGRAM = "kubectl-plugins"
_PLUGINS = {  # descriptions in krew
    "mr": (
        "Inspect and control ManagedResources",
        """\
Lists ManagedResources with their state, shows their objects as a tree, compares them with the
cluster, explains failures with remedies, and suspends, resumes, creates and renders ManagedResources.
""",
    ),
    "gardener": (
        "Inspect a garden and its Shoots",
        "Explains why Shoots, Seeds, Projects and other objects wait or fail, and shows their next steps.\n",
    ),
    "mss": (
        "Inspect and roll back updates of ManagedSeedSets",
        "Shows the progress of updates of ManagedSeedSets, lists their history, and rolls back updates.\n",
    ),
}
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_NOT_NEEDED = (
    # Installed in a checkout of this project, and followed from imports that are never made.
    *("cel_expr_python", "google", "greenlet", "hypothesis", "kubernetes_asyncio", "matplotlib", "mypy", "numpy"),
    *("PIL", "playwright", "pytest", "setuptools", "tkinter", "uvloop"),
)
_ENTRY = """\
import importlib
import pathlib
import sys

PROGRAMS = {programs!r}
called = pathlib.Path(sys.argv[0]).name
found = [name for name in PROGRAMS if called.startswith(name)]
if not found:
    sys.exit(f"error: {{called}} is not the name of a plugin; rename this file to one of {{', '.join(PROGRAMS)}}")
module, function = PROGRAMS[found[0]].split(":")
getattr(importlib.import_module(module), function)()
"""


class PackingError(Exception):
    """The plugins can't be packed here; the message names the missing requirement."""


def this_platform() -> tuple[str, str]:
    """System and architecture in Go's terms.

    Raises:
        PackingError: krew knows no such platform.
    """
    system, machine = platform.system().lower(), platform.machine().lower()
    if system not in {"linux", "darwin"} or machine not in _ARCHITECTURES:
        raise PackingError(f"cannot pack for {system}/{machine}; pack on Linux or macOS, amd64 or arm64")
    return system, _ARCHITECTURES[machine]


def programs(source: Path = PROJECT) -> dict[str, str]:
    """Plugins and their completions, each with its module and function."""
    scripts: dict[str, str] = tomllib.loads((source / "pyproject.toml").read_text())["project"]["scripts"]
    return {name: function for name, function in scripts.items() if name.startswith("kubectl")}


# --- krew


def entry(system: str, architecture: str, *, uri: str, sha256: str) -> dict[str, Any]:
    """Entry of an archive in a manifest."""
    return {
        "selector": {"matchLabels": {"os": system, "arch": architecture}},
        "uri": uri,
        "sha256": sha256,
        "bin": PROGRAM,
    }


def manifest(plugin: str, entries: list[dict[str, Any]], *, release: str, homepage: str) -> dict[str, Any]:
    """Manifest of a plugin, with entries in a fixed order.

    Args:
        plugin: such as `mr`.
        entries: entries of all platforms.
        release: such as `v0.1.0`.
        homepage: page about the plugins for users.
    """
    short, description = _PLUGINS[plugin]
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": plugin},
        "spec": {
            "version": release,
            "homepage": homepage,
            "shortDescription": short,
            "description": description,
            "platforms": sorted(entries, key=lambda one: sorted(one["selector"]["matchLabels"].items())),
        },
    }


def merged(found: dict[str, Any] | None, new: dict[str, Any], *, release: str) -> list[dict[str, Any]]:
    """Entries of a release with a new one, which replaces that of the same platform.

    Args:
        found: existing manifest, if any; one of another release does not count.
        new: an entry.
        release: the packed release.
    """
    kept = found["spec"]["platforms"] if found and found["spec"]["version"] == release else []
    return [*(one for one in kept if one["selector"] != new["selector"]), new]


# --- packing


def pack(source: Path, output: Path, *, release: str, download: str, homepage: str) -> None:
    """Write the single files, the archive and the manifests for krew.

    Args:
        source: directory with the packages, and with their metadata unless these are installed.
        output: an existing directory.
        release: such as `v0.1.0`.
        download: URL of the folder with the archives.
        homepage: page about the plugins for users.

    Raises:
        PackingError: PyInstaller is missing or fails, or the resulting program does not run.
    """
    system, architecture = this_platform()
    suffix = f"{release}-{system}-{architecture}"
    singles = [output / f"kubectl-{plugin}-{suffix}" for plugin in _PLUGINS]
    _freeze(source, singles[0])
    for other in singles[1:]:
        other.unlink(missing_ok=True)
        os.link(singles[0], other)  # one file on this disk
    for single in singles:
        _run([str(single), "--help"], source)
    files = {PROGRAM: singles[0].read_bytes(), "LICENSE": (source / "LICENSE").read_bytes()}
    archive = compressed(files, executable=PROGRAM)
    (output / f"{PROGRAM}-{suffix}.tar.gz").write_bytes(archive)
    uri = f"{download.rstrip('/')}/{PROGRAM}-{suffix}.tar.gz"
    new = entry(system, architecture, uri=uri, sha256=hashlib.sha256(archive).hexdigest())
    for plugin in _PLUGINS:
        file = output / f"{plugin}.yaml"
        found = yaml.safe_load(file.read_text()) if file.exists() else None
        made = manifest(plugin, merged(found, new, release=release), release=release, homepage=homepage)
        file.write_text(yaml.safe_dump(made, sort_keys=False))


def _freeze(source: Path, program: Path) -> None:
    if importlib.util.find_spec("PyInstaller") is None:
        raise PackingError("PyInstaller is missing; `make setup` makes an environment that has it")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        script = directory / "entry.py"
        script.write_text(_ENTRY.format(programs=programs(source)))
        excluded = [f"--exclude-module={module}" for module in _NOT_NEEDED]
        where = [f"--distpath={program.parent}", f"--workpath={directory}", f"--specpath={directory}"]
        command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level=ERROR", "--onefile", "--strip"]
        command += [f"--name={program.name}", "--collect-submodules=kubectl"]
        command += [f"--collect-data={package}" for package in ("gardener", "kubectl", "process")]
        command += [f"--copy-metadata={DISTRIBUTION}"]  # has the version
        _run([*command, *excluded, *where, str(script)], source)


def _run(command: list[str], source: Path) -> None:
    environment: Mapping[str, str] = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(source)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise PackingError(f"{command[0]} failed with code {done.returncode}:\n{done.stderr[-2000:]}")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release.plugins", description="Package the kubectl plugins.")
    parser.add_argument("--download", required=True, metavar="URL", help="URL of the folder with the archives")
    parser.add_argument("--homepage", required=True, metavar="URL", help="homepage of the plugins")
    parser.add_argument(
        "--output", type=Path, default=Path("dist"), metavar="DIRECTORY", help="output directory (default: dist)"
    )
    return parser


def main() -> None:
    options = parser().parse_args()
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    output: Path = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    try:
        pack(PROJECT, output, release=f"v{version}", download=options.download, homepage=options.homepage)
    except PackingError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
