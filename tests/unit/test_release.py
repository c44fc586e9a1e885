"""What `make release` makes, without the plugins, which take too long, and without the network; and how it is published."""

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

import extension
import kube
from kit.packages import ALL, INSTALLED
from release import __main__ as program
from release import bundle, oci, plan
from release.notes import changes, notes
from release.oci import LAYER, compressed, packed
from release.plan import Release

PROJECT = Path(__file__).parents[2]
DIGEST = f"sha256:{'0' * 64}"
RELEASE = Release(version="0.1.0", revision="abc", registry="registry.example.com/team", base=f"python@{DIGEST}")
CHARTS = ("resource-manager", "garden", "garden-controllers", "gardenlet")
FILES = {"b/kustomization.yaml": b"resources: []\n", "a.yaml": b"kind: ConfigMap\n"}


def entries(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


# --- the artifact


def test_an_artifact_is_an_image_layout_with_one_layer() -> None:
    layer = (LAYER, compressed(FILES))
    archive, digest = packed(layer, tag="v1", artifact_type="application/x", annotations={"b": "1", "a": "2"})
    found = entries(archive)
    assert json.loads(found["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (descriptor,) = json.loads(found["index.json"])["manifests"]
    assert descriptor["annotations"] == {"org.opencontainers.image.ref.name": "v1"}
    assert descriptor["digest"] == digest

    def blob(of: dict[str, Any]) -> bytes:
        content = found[f"blobs/{of['digest'].replace(':', '/')}"]
        assert (f"sha256:{hashlib.sha256(content).hexdigest()}", len(content)) == (of["digest"], of["size"])
        return content

    manifest = json.loads(blob(descriptor))
    assert manifest["artifactType"] == "application/x"
    assert blob(manifest["config"]) == b"{}"
    (layer,) = manifest["layers"]
    assert layer["mediaType"] == LAYER
    assert entries(gzip.decompress(blob(layer))) == FILES
    assert len(found) == 5


def test_the_same_files_make_the_same_artifact() -> None:
    other = dict(reversed(FILES.items()))
    one, two = (packed((LAYER, compressed(files)), tag="v1", annotations={}) for files in (FILES, other))
    assert one == two


def test_an_image_is_found_by_its_digest_in_its_archive(tmp_path: Path) -> None:
    archive, digest = packed((LAYER, compressed(FILES)), tag="v1", annotations={})
    (tmp_path / "image.oci.tar").write_bytes(archive)
    assert oci.digest_in(tmp_path / "image.oci.tar") == digest


@pytest.mark.parametrize(("digest", "version"), [(DIGEST, f"digest: {DIGEST}"), ("", "newTag: v0.1.0")])
def test_released_overlays_name_the_image_of_the_release(digest: str, version: str) -> None:
    directory = PROJECT / "manifests"
    files = bundle.manifests(directory, repository=RELEASE.image, tag=RELEASE.tag, digest=digest)
    assert set(files) == {str(path.relative_to(PROJECT)) for path in directory.rglob("*") if path.is_file()}
    own = [
        path for path in directory.glob("overlays/*/kustomization.yaml") if "name: resource-manager" in path.read_text()
    ]
    assert len(own) == 10
    for path in own:
        (image,) = yaml.safe_load(files[str(path.relative_to(PROJECT))])["images"]
        assert image == {"name": "resource-manager", "newName": RELEASE.image, **yaml.safe_load(version)}


# --- commands


def test_what_is_signed_is_named_by_its_digest() -> None:
    for command in (plan.sign(RELEASE.image, DIGEST), plan.attest(RELEASE.image, DIGEST, Path("bill"))):
        assert command[0] == "cosign"
        assert command[-1] == f"registry.example.com/team/resource-manager@{DIGEST}"


def test_each_builder_writes_the_archive_of_an_image_on_the_base_that_is_named() -> None:
    arguments = set(re.findall(r"^ARG (\w+)", (PROJECT / "Dockerfile").read_text(), re.MULTILINE))
    for builder in ("buildah", "docker"):
        (build, *further) = plan.build_image(RELEASE, builder, context=Path("source"), archive=Path("image.oci.tar"))
        given = [value for flag, value in pairwise(build) if flag == "--build-arg"]
        assert f"BASE=python@{DIGEST}" in given
        assert {value.partition("=")[0] for value in given} - {"SOURCE_DATE_EPOCH"} <= arguments
        assert build[-1] == "source"
        assert "image.oci.tar" in " ".join(further[0] if further else build)


@pytest.mark.parametrize("builder", ["buildah", "docker"])
def test_an_image_has_helm_if_there_is_go_to_build_it(builder: str) -> None:
    given = {"context": Path("source"), "archive": Path("image.oci.tar")}
    plain, *_ = plan.build_image(RELEASE, builder, **given)
    build, *_ = plan.build_image(replace(RELEASE, go=f"golang@{DIGEST}"), builder, **given)
    assert "--target" not in plain
    assert ("--target", plan.WITH_HELM) in pairwise(build)
    assert ("--build-arg", f"GO=golang@{DIGEST}") in pairwise(build)
    assert f"AS {plan.WITH_HELM}\n" in (PROJECT / "Dockerfile").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tag", "v9.9.9"], "error: the tag v9.9.9 is not the version"),
        (["--base", "python:3.13"], "error: BASE is python:3.13, which has no digest; add it"),
        (
            ["--base", f"python@{DIGEST}", "--go", "golang:1.26"],
            "error: GO is golang:1.26, which has no digest; add it",
        ),
        (["--base", f"python@{DIGEST}"], "error: install buildah, or docker with buildx; or omit BASE"),
        (["--publish"], "error: publishing needs both: make publish REGISTRY="),
        (["--publish", "--registry", "registry.example.com"], "error: publishing needs both: make publish REGISTRY="),
    ],
)
def test_what_is_missing_is_reported(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name if name == "kubectl" else None)
    assert program.main(arguments) == 1
    assert capsys.readouterr().err.startswith(message)


def test_a_directory_with_other_files_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("")
    assert program.main(["--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path} holds no earlier release, so it is not replaced")
    assert (tmp_path / "thesis.txt").exists()


def test_publishing_needs_programs_that_push_and_sign(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name if name in {"kubectl", "buildah"} else None)
    assert program.main(["--publish", "--registry", "registry.example.com", "--base", f"python@{DIGEST}"]) == 1
    assert capsys.readouterr().err.startswith("error: install cosign, oras; or run make release")


# --- all of it


def made(output: Path, tool: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Path:
    """A release without plugins."""
    tool.write_text('#!/bin/sh\nfor file; do :; done\necho "{}" > "$file"\n')
    tool.chmod(0o755)
    monkeypatch.setattr("release.plugins.pack", lambda *_, **__: None)
    assert program.main(["--bill-tool", str(tool), "--output", str(output), *arguments]) == 0
    return output


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    if not (PROJECT / ".git").exists():
        pytest.skip("needs the repository")
    if not shutil.which("kubectl"):
        pytest.skip("needs kubectl")
    return tmp_path


def test_a_release_has_all_files_and_reports_what_is_left_out(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = made(fresh / "dist", fresh / "bill", monkeypatch)
    stem = "gardener_resource_manager_python-0.1.0"
    wheel, source = f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"
    bundled, charted = "resource-manager-manifests-v0.1.0.tar.gz", {f"{name}-0.1.0.tgz" for name in CHARTS}
    libraries = {f"kubernetes_controller_kit-{kube.__version__}", f"gardener_extension_kit-{extension.__version__}"}
    wheels = {wheel, *(f"{each}-py3-none-any.whl" for each in libraries)}
    files = {*wheels, source, bundled, *charted, "documentation-v0.1.0.tar.gz", program.BILL}
    assert {path.name for path in output.iterdir()} == {*files, program.NOTES, program.CHECKSUMS}
    with zipfile.ZipFile(output / wheel) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {*INSTALLED, f"{stem}.dist-info"}
    with tarfile.open(output / source) as archived:
        assert {f"{stem}/pyproject.toml", f"{stem}/LICENSE"} <= set(archived.getnames())
    reason = "image: it needs a base; give one: make release BASE=IMAGE@sha256:DIGEST\n"
    assert capsys.readouterr().out.endswith(f"left out: {reason}")
    text = (output / program.NOTES).read_text()
    assert f"## Left out\n\n- {reason}" in text
    assert set(re.findall(r"^- `(.*)`: ", text.partition("\n## ")[0], re.MULTILINE)) == files


def test_what_is_published_is_pushed_as_it_lies_there_and_signed_by_its_digest(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[plan.Command] = []
    image, digest = packed((LAYER, compressed(FILES)), tag=RELEASE.tag, annotations={})

    def run(command: plan.Command) -> None:
        ran.append(command)
        if command[:2] == ("buildah", "push"):
            Path(command[-1].split(":")[1]).write_bytes(image)
        if command[:2] == ("oras", "copy"):
            layout = Path(command[-2].rpartition(":")[0])
            digests[command[-1]] = oci.digest_in(layout)
            layouts[command[-1]] = entries(layout.read_bytes())

    digests: dict[str, str] = {}
    layouts: dict[str, dict[str, bytes]] = {}
    find = shutil.which
    monkeypatch.setattr("shutil.which", lambda name: find(name) or (name if name in TOOLS else None))
    monkeypatch.setattr(program, "python_packages", lambda *_: None)
    monkeypatch.setattr(program, "_run_aloud", run)
    monkeypatch.setattr(program, "_check_publishing", lambda _: None)  # there may be changes while this is tested
    base = ("--base", f"python@{DIGEST}")
    output = made(fresh / "dist", fresh / "bill", monkeypatch, "--publish", "--registry", RELEASE.registry, *base)
    repositories = {
        f"{RELEASE.registry}/resource-manager:v0.1.0",
        f"{RELEASE.registry}/resource-manager-manifests:v0.1.0",
        *(f"{RELEASE.registry}/charts/{name}:0.1.0" for name in CHARTS),
    }
    assert digests.keys() == repositories
    signed = [command[-1] for command in ran if command[:2] == ("cosign", "sign")]
    assert signed == [f"{name.rpartition(':')[0]}@{digest}" for name, digest in digests.items()]
    attested = [command for command in ran if command[:2] == ("cosign", "attest")]
    assert attested == [plan.attest(RELEASE.image, digest, output / program.BILL)]
    files = entries(gzip.decompress((output / "resource-manager-manifests-v0.1.0.tar.gz").read_bytes()))
    kustomization = files["manifests/overlays/standalone/kustomization.yaml"].decode()
    assert f"newName: {RELEASE.image}\n  digest: {digest}" in kustomization
    image_of_release = {"repository": RELEASE.image, "tag": "v0.1.0", "digest": digest}
    for name in CHARTS:
        files = entries(gzip.decompress((output / f"{name}-0.1.0.tgz").read_bytes()))
        values = yaml.safe_load(files[f"{name}/values.yaml"])
        assert values["image"].items() >= image_of_release.items()
        assert_is_chart(layouts[f"{RELEASE.registry}/charts/{name}:0.1.0"], output / f"{name}-0.1.0.tgz", name)


TOOLS = ("buildah", *plan.PUBLISHERS)


def assert_is_chart(layout: dict[str, bytes], chart: Path, name: str) -> None:
    """As Helm pulls it."""
    (descriptor,) = json.loads(layout["index.json"])["manifests"]
    manifest = json.loads(layout[f"blobs/{descriptor['digest'].replace(':', '/')}"])
    assert manifest["config"]["mediaType"] == "application/vnd.cncf.helm.config.v1+json"
    (layer,) = manifest["layers"]
    assert layer["mediaType"] == "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
    assert layout[f"blobs/{layer['digest'].replace(':', '/')}"] == chart.read_bytes()
    config = json.loads(layout[f"blobs/{manifest['config']['digest'].replace(':', '/')}"])
    assert (config["name"], config["version"]) == (name, "0.1.0")


# --- notes

CHANGELOG = """# Changelog

## Unreleased

- [New](docs/new.md#it): `a`.

## 0.1.0 - 2026-01-02

- Old.
"""


def test_notes_state_how_to_install_what_there_is() -> None:
    chart = "helm install resource-manager resource-manager-0.1.0.tgz -n resource-manager --create-namespace"
    image = "skopeo copy oci-archive:resource-manager-image-v0.1.0.oci.tar docker://{}/resource-manager:v0.1.0\n"
    here = Release(version="0.1.0", revision="abc", registry="", base="")
    named = f"{chart} --set image.repository=registry.example.com/resource-manager\n"
    for release, commands in (
        (RELEASE, image.format("registry.example.com/team") + f"{chart}\n"),
        (replace(here, base=RELEASE.base), image.format("registry.example.com") + named),
        (here, named),
    ):
        assert f"## Installing\n\n```\n{commands}```\n" in notes(release, [], left_out={}, changelog=CHANGELOG)


@pytest.mark.parametrize(("version", "text"), [("0.1.0", "- Old."), ("0.2.0", "- New: `a`.")])
def test_notes_have_what_the_changelog_reports_about_the_version(version: str, text: str) -> None:
    release = Release(version=version, revision="abc", registry="", base="")
    assert changes(CHANGELOG, release) == text
    assert notes(release, [], left_out={}, changelog=CHANGELOG).endswith(f"## Changes\n\n{text}\n")


# --- names


def test_the_workflow_runs_the_same_command_and_no_program_of_others_by_a_name_that_may_change() -> None:
    workflow = yaml.safe_load((PROJECT / ".github" / "workflows" / "release.yaml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert not [step for step in steps if "uses" in step]
    (command,) = (step["run"] for step in steps if "make publish" in step["run"])
    variables = set(re.findall(r"\b([A-Z]+)=", command))
    assert variables == {"BASE", "DOWNLOAD", "GO", "HOMEPAGE", "REGISTRY", "TAG"}
    makefile = (PROJECT / "Makefile").read_text()
    assert all(f"$(if $({variable})," in makefile for variable in variables)
    for tool in ("COSIGN", "ORAS"):
        assert re.search(r"@v\d+\.\d+\.\d+$", workflow["jobs"]["release"]["env"][tool])


def test_a_release_leaves_the_environment_of_running_programs_alone() -> None:
    commands = subprocess.run(
        ("make", "-n", "-B", "release"), cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout
    assert "build/release/bin/python -m release" in commands
    assert ".venv" not in commands


_REGISTRIES = re.compile(
    r"\b(?:docker\.io|ghcr\.io|gcr\.io|quay\.io|registry\.k8s\.io|pkg\.dev|azurecr\.io|public\.ecr\.aws)\b"
    r"|\bregistry\.(?!example\b)[\w.-]+/"
)
_OWN = (*ALL, "manifests", "docs", ".github")


def test_no_registry_is_named_but_a_placeholder() -> None:
    files = [path for name in _OWN for path in (PROJECT / name).rglob("*") if path.suffix in {".md", ".py", ".yaml"}]
    files += [PROJECT / name for name in ("README.md", "Dockerfile", "Makefile", "CHANGELOG.md", "CONTRIBUTING.md")]
    assert len(files) > 300
    assert {str(path): found for path in files if (found := _REGISTRIES.findall(path.read_text()))} == {}
