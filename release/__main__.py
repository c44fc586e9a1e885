"""The command line: `python -m release --base IMAGE@DIGEST`; `--publish --registry REGISTRY` publishes, too."""

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
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import yaml

from release import bundle, oci, plan, plugins, site
from release.chart import CHARTS, GARDENLET, ChartError, Image, chart, gardenlet_chart
from release.gardenlet_manifests import CHART as CHART_OF_GARDENLET
from release.notes import notes
from release.plan import Command, Release

PROJECT = Path(__file__).resolve().parents[1]
BILL, NOTES, CHECKSUMS = "resource-manager.cdx.json", "NOTES.md", "SHA256SUMS"
_CONFIG_OF_CHART = "application/vnd.cncf.helm.config.v1+json"
_CONTENT_OF_CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_CHART_OF_GARDENLET = CHART_OF_GARDENLET.relative_to(PROJECT)
_BILL_TOOL = PROJECT / "build" / "sbom" / "bin" / "cyclonedx-py"


@dataclass(frozen=True, slots=True)
class Library:
    """Packages with a wheel of their own. Attributes: page: its documentation; settings: its `pyproject.toml`."""

    packages: tuple[str, ...]
    page: str
    settings: str


CONTROLLER_KIT = Library(("kube", "process"), "docs/controller-kit.md", "release/library/pyproject.toml")
EXTENSION_KIT = Library(("extension", "gardener"), "docs/extension-kit.md", "release/extension_library/pyproject.toml")
LIBRARIES = (CONTROLLER_KIT, EXTENSION_KIT)


class ReleaseError(Exception):
    """A step has failed, or a requirement is missing; the message includes the remedy."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        run(options)
    except (ReleaseError, plugins.PackingError, ChartError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description="Build a release of the committed state.")
    parser.add_argument(
        "--base", default="", metavar="IMAGE@DIGEST", help="base of the image; without it, no image is built"
    )
    parser.add_argument(
        "--go",
        default="",
        metavar="IMAGE@DIGEST",
        help="image with Go; without it, the image has no helm for gardenlets",
    )
    parser.add_argument("--registry", default="", help="registry of the image, used in manifests and charts")
    parser.add_argument("--publish", action="store_true", help="push to the registry, and sign")
    parser.add_argument("--tag", default="", help="tag of the release; must match the version in pyproject.toml")
    parser.add_argument(
        "--download", default="https://example.com/releases", metavar="URL", help="URL of the folder with the archives"
    )
    parser.add_argument("--homepage", default="https://example.com", metavar="URL", help="homepage of the project")
    parser.add_argument("--bill-tool", default=str(_BILL_TOOL), metavar="PROGRAM", help="path of cyclonedx-py")
    parser.add_argument(
        "--output", type=Path, default=Path("dist"), metavar="DIRECTORY", help="output directory (default: dist)"
    )
    return parser


def run(options: argparse.Namespace) -> None:
    """Make the release.

    Raises:
        ReleaseError: a requirement is missing, or a step has failed.
        PackingError: the plugins can't be packed.
        ChartError: a chart does not match its overlays.
    """
    release = _release(options)
    builder = _builder() if release.base else ""
    if options.publish:
        _check_publishing(release)
    output: Path = options.output.resolve()
    _clear(output)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        _check_out(source)
        python_packages(source, output)
        for each in LIBRARIES:
            library(each, source, output)
        _say("building the site of the documentation")
        with tarfile.open(output / f"documentation-{release.tag}.tar.gz", "w:gz") as tar:
            site.write(source, source / "site", version=release.tag)
            tar.add(source / "site", "documentation")
        bill_of_materials(source, output, tool=options.bill_tool)
        _say("packing the plugins of kubectl")
        plugins.pack(source, output, release=release.tag, download=options.download, homepage=options.homepage)
        digest = image(release, builder, source, output) if builder else ""
        manifests_and_charts(release, source, output, digest=digest)
        left_out = _left_out(release)
        changelog = (source / "CHANGELOG.md").read_text()
        text = notes(release, [path.name for path in output.iterdir()], left_out=left_out, changelog=changelog)
        (output / NOTES).write_text(text)
        checksums(output)
        if options.publish:
            publish(release, output, Path(scratch))
    for path in sorted(output.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")
    for what, why in left_out.items():
        print(f"left out: {what}: {why}")


def _clear(output: Path) -> None:
    """Remove an earlier release, and nothing else.

    Raises:
        ReleaseError: the directory holds other files.
    """
    is_ours = output == PROJECT / "dist" or (output / CHECKSUMS).is_file()
    if output.exists() and not is_ours and (not output.is_dir() or any(output.iterdir())):
        raise ReleaseError(f"{output} holds no earlier release, so it is not replaced; name an empty directory")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)


def _release(options: argparse.Namespace) -> Release:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    if options.tag and options.tag != f"v{version}":
        raise ReleaseError(f"the tag {options.tag} is not the version {version} in pyproject.toml; change one of them")
    for name, given in (("BASE", options.base), ("GO", options.go)):
        if given and "@sha256:" not in given:
            raise ReleaseError(f"{name} is {given}, which has no digest; add it; see 'The image' in docs/install.md")
    if shutil.which("kubectl") is None:
        raise ReleaseError("kubectl is missing, which makes the objects of the chart; install it")
    revision = _output("git", "rev-parse", "HEAD")
    registry = options.registry.rstrip("/")
    return Release(version=version, revision=revision, registry=registry, base=options.base, go=options.go)


def _left_out(release: Release) -> dict[str, str]:
    """Missing parts, each with the reason."""
    if not release.base:
        return {"image": "it needs a base; give one: make release BASE=IMAGE@sha256:DIGEST"}
    if not release.go:
        return {"helm in the image": "gardenlets need it for extensions; give Go: make release GO=IMAGE@sha256:DIGEST"}
    return {}


def _builder() -> str:
    if shutil.which("buildah"):
        return "buildah"
    if shutil.which("docker"):
        tried = subprocess.run(("docker", "buildx", "version"), check=False, capture_output=True)
        if tried.returncode == 0:
            return "docker"
    raise ReleaseError("install buildah, or docker with buildx; or omit BASE to build everything but the image")


def _check_publishing(release: Release) -> None:
    if not (release.registry and release.base):
        raise ReleaseError("publishing needs both: make publish REGISTRY=REGISTRY/TEAM BASE=IMAGE@sha256:DIGEST")
    if missing := [tool for tool in plan.PUBLISHERS if shutil.which(tool) is None]:
        raise ReleaseError(f"install {', '.join(missing)}; or run make release, which does not publish")
    if _output("git", "status", "--porcelain"):
        raise ReleaseError("there are uncommitted changes, which a release would not have; commit them")


# --- steps


def _check_out(directory: Path) -> None:
    """Extract the committed files alone."""
    done = subprocess.run(["git", "archive", "HEAD"], cwd=PROJECT, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        tar.extractall(directory, filter="data")


def python_packages(source: Path, output: Path) -> None:
    """Build the packages; the metadata of the wheel stay in the source, where the plugins find their version."""
    _say("building wheel and source distribution")
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(source, copy, dirs_exist_ok=True)  # the backend writes files of its own
        _build(Path(copy), output, "sdist", "wheel")
    (wheel,) = output.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".dist-info/" in name:
                archive.extract(name, source)


def library(made: Library, source: Path, output: Path) -> None:
    """Build the wheel of a library, for other programs."""
    _say(f"building the wheel of {', '.join(made.packages)}")
    with tempfile.TemporaryDirectory() as copy:
        for package in made.packages:
            shutil.copytree(source / package, Path(copy, package))
        for file in ("LICENSE", made.page, made.settings):
            shutil.copy(source / file, copy)
        _build(Path(copy), output, "wheel")


def _build(source: Path, output: Path, *kinds: str) -> None:
    # A step changes the arguments.
    steps = "; ".join(f"b.build_{kind}(o)" for kind in kinds)
    _run(
        (sys.executable, "-c", f"import sys, setuptools.build_meta as b; o = sys.argv[1]; {steps}", str(output)),
        cwd=source,
        environment={"SOURCE_DATE_EPOCH": "315532800"},  # the first day that a zip file can have
    )


def bill_of_materials(source: Path, output: Path, *, tool: str) -> None:
    if shutil.which(tool) is None:
        raise ReleaseError(f"{tool} is missing; `make release` installs it, as locked in requirements-sbom.txt")
    _say("writing the bill of materials")
    of = ("requirements", "requirements.txt", "--pyproject", "pyproject.toml")
    _run((tool, *of, "--output-reproducible", "--output-file", str(output / BILL)), cwd=source)


def image(release: Release, builder: str, source: Path, output: Path) -> str:
    """Build an archive of the image, and return its digest."""
    archive = output / release.image_file
    for command in plan.build_image(release, builder, context=source, archive=archive):
        _run_aloud(command)
    return oci.digest_in(archive)


def manifests_and_charts(release: Release, source: Path, output: Path, *, digest: str) -> None:
    """Pack manifests and charts; they name the image by its digest if it is for a registry: other images have none."""
    _say("packing manifests and charts")
    image = Image(repository=release.image, tag=release.tag, digest=digest if release.registry else "")
    files = bundle.manifests(source / "manifests", repository=image.repository, tag=image.tag, digest=image.digest)
    (output / release.manifests_file).write_bytes(oci.compressed(files))
    charts = {GARDENLET: gardenlet_chart(source / _CHART_OF_GARDENLET, version=release.version, image=image)}
    for each in CHARTS:
        overlays = (source / "manifests" / "overlays" / name for name in each.overlays)
        made = (yaml.load_all(_output("kubectl", "kustomize", str(overlay)), yaml.CSafeLoader) for overlay in overlays)
        charts[each.name] = chart(each, chain.from_iterable(made), version=release.version, image=image)
    for name, files in charts.items():
        (output / release.chart_file(name)).write_bytes(oci.compressed(files))


def checksums(output: Path) -> None:
    """Write the checksums in the format of `sha256sum --check`."""
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(output.iterdir())]
    (output / CHECKSUMS).write_text("\n".join(sums) + "\n")


# --- publishing


def publish(release: Release, output: Path, scratch: Path) -> None:
    """Push image, manifests and charts as they are in the directory, and sign them by their digests."""
    archive = output / release.image_file
    digest = oci.digest_in(archive)
    commands = [plan.push(archive, release.tag, release.image), plan.sign(release.image, digest)]
    commands.append(plan.attest(release.image, digest, output / BILL))
    for repository, tag, (layout, digest) in artifacts(release, output):
        file = scratch / f"{digest.removeprefix('sha256:')}.oci.tar"
        file.write_bytes(layout)
        commands += [plan.push(file, tag, repository), plan.sign(repository, digest)]
    for command in commands:
        _run_aloud(command)


def artifacts(release: Release, output: Path) -> Iterator[tuple[str, str, tuple[bytes, str]]]:
    """Manifests and charts for a registry: repository, tag, and layout with digest."""

    def annotations(title: str, version: str) -> dict[str, str]:
        about = {"version": version, "revision": release.revision, "title": title}
        return {f"org.opencontainers.image.{name}": value for name, value in about.items()}

    layer = (oci.LAYER, (output / release.manifests_file).read_bytes())
    about = annotations("resource-manager-manifests", release.tag)
    packed = oci.packed(layer, tag=release.tag, artifact_type=bundle.ARTIFACT_TYPE, annotations=about)
    yield release.manifests, release.tag, packed

    for name in (*(each.name for each in CHARTS), GARDENLET):
        content = (output / release.chart_file(name)).read_bytes()
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            described = tar.extractfile(f"{name}/Chart.yaml")
            assert described is not None  # a file: this is our own archive
            config = json.dumps(yaml.safe_load(described)).encode()
        about = annotations(name, release.version)
        layer = (_CONTENT_OF_CHART, content)
        yield (
            release.chart(name),
            release.version,
            oci.packed(layer, tag=release.version, config=(_CONFIG_OF_CHART, config), annotations=about),
        )


# --- commands


def _say(text: str) -> None:
    print(text, flush=True)


def _run_aloud(command: Command) -> None:
    _say(f"$ {shlex.join(command)}")
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
