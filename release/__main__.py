"""The command line: `python -m release --registry REGISTRY --base IMAGE@DIGEST`, or with `--dry-run`."""

import argparse
import hashlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from release import plan
from release.bases import ARTIFACT_TYPE, bases
from release.oci import packed
from release.plan import Command, Release

PROJECT = Path(__file__).resolve().parents[1]
BILL = "resource-manager.cdx.json"
CHECKSUMS = "SHA256SUMS"
_BILL_TOOL = PROJECT / "build" / "sbom" / "bin" / "cyclonedx-py"
_METADATA = PROJECT / "build" / "image.json"


class ReleaseError(Exception):
    """What is missing or failed, and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        run(options)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description="Make a release of what is committed.")
    parser.add_argument("--dry-run", action="store_true", help="only say what needs an engine or a registry")
    parser.add_argument("--registry", default="registry.example.com", help="where images go; default: %(default)s")
    parser.add_argument("--base", default="", metavar="IMAGE@DIGEST", help="what the image is built on")
    parser.add_argument("--tag", default="", help="the tag that is released; must fit the version in pyproject.toml")
    parser.add_argument("--download", default="https://example.com/releases", metavar="URL", help="folder of archives")
    parser.add_argument("--homepage", default="https://example.com", metavar="URL", help="where people read about it")
    parser.add_argument("--bill-tool", default=str(_BILL_TOOL), metavar="PROGRAM", help="cyclonedx-py")
    parser.add_argument("--output", type=Path, default=Path("dist"), metavar="DIRECTORY", help="default: dist")
    return parser


def run(options: argparse.Namespace) -> None:
    """Raises ReleaseError."""
    release = _release(options)
    output: Path = options.output.resolve()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        _check_out(source)
        python_packages(source, output)
        plugin(source, output, download=options.download, homepage=options.homepage)
        bill_of_materials(source, output, tool=options.bill_tool)
        digest = image(release, output / BILL, dry=options.dry_run)
        manifests(release, source / "manifests", output, digest=digest, dry=options.dry_run)
    checksums(output)
    for path in sorted(output.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")


def _release(options: argparse.Namespace) -> Release:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    if options.tag and options.tag != f"v{version}":
        raise ReleaseError(f"the tag {options.tag} is not the version {version} in pyproject.toml; change one of them")
    if not options.dry_run:
        if missing := [tool for tool in plan.TOOLS if shutil.which(tool) is None]:
            raise ReleaseError(f"install {', '.join(missing)}, or try what works without: make release DRY_RUN=1")
        if "@sha256:" not in options.base:
            raise ReleaseError("name the base of the image by its digest; see 'The image' in docs/install.md")
        if _output("git", "status", "--porcelain"):
            raise ReleaseError("there are changes that are not committed, and a release has what is committed")
    base = options.base or "IMAGE@" + plan.DIGEST
    return Release(version=version, revision=_output("git", "rev-parse", "HEAD"), registry=options.registry, base=base)


# --- steps


def _check_out(directory: Path) -> None:
    """What is committed, and nothing that lies about beside it."""
    done = subprocess.run(["git", "archive", "HEAD"], cwd=PROJECT, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        tar.extractall(directory, filter="data")


def python_packages(source: Path, output: Path) -> None:
    print("building wheel and source distribution", flush=True)
    build = "from setuptools.build_meta import build_wheel as w, build_sdist as s; import sys; o = sys.argv[1]"
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(source, copy, dirs_exist_ok=True)  # the backend leaves files of its own
        _run(
            (sys.executable, "-c", f"{build}; s(o); w(o)", str(output)),
            cwd=Path(copy),
            environment={"SOURCE_DATE_EPOCH": "315532800"},  # the first day that a zip file can have
        )


def plugin(source: Path, output: Path, *, download: str, homepage: str) -> None:
    print("packing the plugin, which takes a minute", flush=True)
    where = ("--download", download, "--homepage", homepage, "--output", str(output))
    environment = {"PYTHONPATH": str(source)}
    _run((sys.executable, "-m", "kubectl.mr.krew", *where), cwd=source, environment=environment)


def bill_of_materials(source: Path, output: Path, *, tool: str) -> None:
    if shutil.which(tool) is None:
        raise ReleaseError(f"{tool} is missing; `make release` installs it, as locked in requirements-sbom.txt")
    print("writing the bill of materials", flush=True)
    of = ("requirements", "requirements.txt", "--pyproject", "pyproject.toml")
    _run((tool, *of, "--output-reproducible", "--output-file", str(output / BILL)), cwd=source)


def image(release: Release, bill: Path, *, dry: bool) -> str:
    """Builds, pushes and signs; returns the digest, empty in a dry run."""
    _METADATA.parent.mkdir(exist_ok=True)
    _do(plan.build_image(release, _METADATA), dry=dry)
    digest = "" if dry else str(json.loads(_METADATA.read_text())["containerimage.digest"])
    _do(plan.sign(release.image, digest or plan.DIGEST), dry=dry)
    _do(plan.attest(release.image, digest or plan.DIGEST, bill), dry=dry)
    return digest


def manifests(release: Release, directory: Path, output: Path, *, digest: str, dry: bool) -> None:
    files = bases(directory, repository=release.image, tag=release.tag, digest=digest)
    about = {"version": release.tag, "revision": release.revision, "title": "resource-manager-manifests"}
    annotations = {f"org.opencontainers.image.{name}": value for name, value in about.items()}
    archive, of_artifact = packed(files, tag=release.tag, artifact_type=ARTIFACT_TYPE, annotations=annotations)
    layout = output / f"resource-manager-manifests-{release.tag}.oci.tar"
    layout.write_bytes(archive)
    print(f"packed {len(files)} manifests as {of_artifact}", flush=True)
    _do(plan.push_manifests(release, layout), dry=dry)
    _do(plan.sign(release.manifests, of_artifact), dry=dry)


def checksums(output: Path) -> None:
    """As `sha256sum --check` reads them."""
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(output.iterdir())]
    (output / CHECKSUMS).write_text("\n".join(sums) + "\n")


# --- commands


def _do(command: Command, *, dry: bool) -> None:
    if dry:
        print(f"would run: {shlex.join(command)}", flush=True)
    else:
        print(f"$ {shlex.join(command)}", flush=True)
        _run(command)


def _run(command: Command, *, cwd: Path = PROJECT, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(environment or {})}, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise ReleaseError(f"{command[0]} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
