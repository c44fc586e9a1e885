"""Manifests in files, directories and kustomizations, read like by the agent."""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.problems import problem_of
from gardener.managed_resource.references import resource_string
from kube.objects import Key, Object
from kubectl.errors import UserError

STANDARD_INPUT = Path("-")
_SUFFIXES = frozenset({".yaml", ".yml", ".json", ".br"})
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_KUSTOMIZE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Text:
    """Content of a file; the suffix of its name marks compressed content for the decoder."""

    name: str
    content: bytes


def read(paths: Iterable[Path], kustomizations: Iterable[Path] = ()) -> list[Text]:
    """Read files, files of directories by name, built kustomizations, `-` for standard input.

    Raises: UserError: something can't be read, or there is nothing.
    """
    found = [text for path in paths for text in _read(path)]
    found += [Text(str(path), _kustomized(path)) for path in kustomizations]
    if not found:
        raise UserError("there are no manifests", hint=f"files must end in one of {' '.join(sorted(_SUFFIXES))}")
    return found


def _read(path: Path) -> list[Text]:
    if path == STANDARD_INPUT:
        return [Text("standard input", sys.stdin.buffer.read())]
    try:
        if not path.is_dir():
            return [Text(str(path), path.read_bytes())]
        if any((path / name).is_file() for name in _KUSTOMIZATIONS):
            return [Text(str(path), _kustomized(path))]
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.is_file())
        return [Text(str(file), file.read_bytes()) for file in files]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error


def _kustomized(directory: Path) -> bytes:
    command = next((c for c in (["kustomize", "build"], ["kubectl", "kustomize"]) if shutil.which(c[0])), None)
    if command is None:
        raise UserError(
            f"{directory} is a kustomization, but there is neither kustomize nor kubectl",
            hint="install one of them, or name the manifests themselves",
        )
    try:
        built = subprocess.run([*command, str(directory)], capture_output=True, timeout=_KUSTOMIZE_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{' '.join(command)} {directory} was not done within {_KUSTOMIZE_SECONDS:.0f} s") from error
    if built.returncode:
        errors = built.stderr.decode(errors="replace").strip()
        raise UserError(f"{' '.join(command)} {directory} failed:", details=errors.splitlines())
    return built.stdout


def objects_in(texts: Iterable[Text]) -> list[Object]:
    """All objects, in order. Raises UserError: names all documents that can't be read."""
    problems: list[str] = []
    objects: list[Object] = []
    for text in texts:
        decoded = decode_secrets([(Key("", text.name), {text.name: text.content})])
        objects += [item.object for item in decoded.objects]
        problems += [f"{text.name}: index {error.index}: {error.message}" for error in decoded.errors]
    if problems:
        raise UserError("some documents cannot be read:", details=problems)
    return objects


def demand_applicable(objects: Iterable[Object]) -> None:
    """Check that an agent could apply the objects, as far as known. Raises UserError."""
    details = [f"{resource_string(obj)}: {problem}" for obj in objects if (problem := problem_of(obj))]
    if details:
        raise UserError("some objects can't be applied:", details=details)
