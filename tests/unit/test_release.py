"""What `make release DRY_RUN=1` makes, without the plugin's archive, which takes too long, and without the network."""

import gzip
import hashlib
import io
import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from release import __main__ as program
from release import plan
from release.bases import ARTIFACT_TYPE, bases
from release.oci import LAYER, packed
from release.plan import Release

PROJECT = Path(__file__).parents[2]
DIGEST = f"sha256:{'0' * 64}"
RELEASE = Release(version="0.1.0", revision="abc", registry="registry.example.com/team", base=f"python@{DIGEST}")
FILES = {"b/kustomization.yaml": b"resources: []\n", "a.yaml": b"kind: ConfigMap\n"}


def entries(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


# --- the artifact


def test_an_artifact_is_an_image_layout_with_one_layer() -> None:
    archive, digest = packed(FILES, tag="v1", artifact_type="application/x", annotations={"b": "1", "a": "2"})
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
    one, two = (packed(files, tag="v1", artifact_type="x", annotations={}) for files in (FILES, other))
    assert one == two


@pytest.mark.parametrize(("digest", "version"), [(DIGEST, f"digest: {DIGEST}"), ("", "newTag: v0.1.0")])
def test_released_overlays_name_the_image_of_the_release(digest: str, version: str) -> None:
    directory = PROJECT / "manifests"
    files = bases(directory, repository=RELEASE.image, tag=RELEASE.tag, digest=digest)
    assert set(files) == {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    own = [
        path for path in directory.glob("overlays/*/kustomization.yaml") if "name: resource-manager" in path.read_text()
    ]
    assert len(own) == 8
    for path in own:
        (image,) = yaml.safe_load(files[str(path.relative_to(directory))])["images"]
        assert image == {"name": "resource-manager", "newName": RELEASE.image, **yaml.safe_load(version)}


# --- commands


def test_what_is_signed_is_named_by_its_digest() -> None:
    for command in (plan.sign(RELEASE.image, DIGEST), plan.attest(RELEASE.image, DIGEST, Path("bill"))):
        assert command[0] == "cosign"
        assert command[-1] == f"registry.example.com/team/resource-manager@{DIGEST}"


def test_the_image_is_built_on_the_base_that_is_named_and_leaves_its_digest() -> None:
    command = plan.build_image(RELEASE, Path("metadata"))
    assert f"BASE=python@{DIGEST}" in command
    assert command[command.index("--metadata-file") + 1] == "metadata"
    arguments = set(re.findall(r"^ARG (\w+)", (PROJECT / "Dockerfile").read_text(), re.MULTILINE))
    assert {"BASE", "VERSION", "REVISION"} <= arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dry-run", "--tag", "v9.9.9"], "error: the tag v9.9.9 is not the version"),
        ([], "error: install docker, cosign, oras, or try what works without: make release DRY_RUN=1"),
    ],
)
def test_what_is_missing_is_said(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert program.main(arguments) == 1
    assert capsys.readouterr().err.startswith(message)


# --- all of it


@pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="needs the repository")
def test_a_dry_run_makes_all_files_and_says_what_it_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = tmp_path / "bill"
    tool.write_text('#!/bin/sh\nfor file; do :; done\necho "{}" > "$file"\n')
    tool.chmod(0o755)
    monkeypatch.setattr(program, "plugin", lambda *_, **__: None)
    output = tmp_path / "dist"
    assert program.main(["--dry-run", "--bill-tool", str(tool), "--output", str(output)]) == 0
    stem = "gardener_resource_manager_python-0.1.0"
    layout = "resource-manager-manifests-v0.1.0.oci.tar"
    bill, sums = "resource-manager.cdx.json", "SHA256SUMS"
    wheel, source = f"{stem}-py3-none-any.whl", f"{stem}.tar.gz"
    assert {path.name for path in output.iterdir()} == {wheel, source, layout, bill, sums}
    subprocess.run(["sha256sum", "--check", "--strict", sums], cwd=output, check=True, capture_output=True)
    packages = {
        "agent",
        "config",
        "devcluster",
        "gardenapi",
        "gardener",
        "image",
        "kube",
        "kubectl",
        "localprocesses",
        "process",
        "webhooks",
    }
    with zipfile.ZipFile(output / wheel) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {*packages, f"{stem}.dist-info"}
    with tarfile.open(output / source) as archived:
        assert {f"{stem}/pyproject.toml", f"{stem}/LICENSE"} <= set(archived.getnames())
    said = capsys.readouterr().out
    (manifest,) = json.loads(entries((output / layout).read_bytes())["index.json"])["manifests"]
    for command in ("docker buildx build", "oras copy --from-oci-layout", "cosign sign", "cosign attest"):
        assert f"would run: {command} " in said
    assert f"cosign sign --yes registry.example.com/resource-manager-manifests@{manifest['digest']}\n" in said
    assert ARTIFACT_TYPE.startswith("application/vnd.gardener-resource-manager-python.")


# --- names


def test_the_workflow_runs_the_same_command_and_no_program_of_others_by_a_name_that_may_change() -> None:
    workflow = yaml.safe_load((PROJECT / ".github" / "workflows" / "release.yaml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert not [step for step in steps if "uses" in step]
    (command,) = (step["run"] for step in steps if "make release" in step["run"])
    variables = set(re.findall(r"\b([A-Z]+)=", command))
    assert variables == {"BASE", "DOWNLOAD", "HOMEPAGE", "REGISTRY", "TAG"}
    makefile = (PROJECT / "Makefile").read_text()
    assert all(f"$(if $({variable})," in makefile for variable in variables)
    for tool in ("COSIGN", "ORAS"):
        assert re.search(r"@v\d+\.\d+\.\d+$", workflow["jobs"]["release"]["env"][tool])


_REGISTRIES = re.compile(
    r"\b(?:docker\.io|ghcr\.io|gcr\.io|quay\.io|registry\.k8s\.io|pkg\.dev|azurecr\.io|public\.ecr\.aws)\b"
    r"|\bregistry\.(?!example\b)[\w.-]+/"
)
_OWN = (
    "manifests",
    "docs",
    "release",
    "devcluster",
    ".github",
    "webhooks",
    "agent",
    "config",
    "gardenapi",
    "kubectl",
    "localprocesses",
)


def test_no_registry_is_named_but_a_placeholder() -> None:
    files = [path for name in _OWN for path in (PROJECT / name).rglob("*") if path.suffix in {".md", ".py", ".yaml"}]
    files += [PROJECT / name for name in ("README.md", "Dockerfile", "Makefile", "CHANGELOG.md", "CONTRIBUTING.md")]
    assert len(files) > 300
    assert {str(path): found for path in files if (found := _REGISTRIES.findall(path.read_text()))} == {}
