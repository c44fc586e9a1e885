"""Placeholders in manifests of components."""

from pathlib import Path
from typing import Any

import pytest

from components.manifest import ManifestError, manifest, of_kind, template

MANIFEST = """\
kind: Service
spec: {replicas: "${number}", name: "${text}", address: "http://${text}:${number}", shell: $HOME $1 $(A)}
---
kind: Secret
stringData:
  file: |
    host: "${text}"
"""


def rendered(folder: Path, content: str = MANIFEST, **values: Any) -> list[Any]:
    (folder / "manifest.yaml").write_text(content)
    return manifest(str(folder / "module.py"), **values)


def test_a_placeholder_becomes_its_value_or_a_part_of_the_text(tmp_path: Path) -> None:
    found = rendered(tmp_path, number=2, text='a"\n${number}')
    assert of_kind(found, "Service")["spec"] == {
        "replicas": 2,
        "name": 'a"\n${number}',
        "address": 'http://a"\n${number}:2',
        "shell": "$HOME $1 $(A)",
    }
    assert of_kind(found, "Secret")["stringData"]["file"] == 'host: "a"\n${number}"\n'


@pytest.mark.parametrize("values", [{"text": "a"}, {"text": "a", "number": 1, "more": 2}])
def test_a_placeholder_without_a_value_is_an_error_and_so_is_the_reverse(
    values: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ManifestError, match=r"^manifest\.yaml: (number|more): "):
        rendered(tmp_path, **values)


def test_objects_are_the_callers_own(tmp_path: Path) -> None:
    first, second = (rendered(tmp_path, "a: {b: []}") for _ in range(2))
    first[0]["a"]["b"].append("changed")
    assert second == [{"a": {"b": []}}]


def test_a_file_in_another_format_has_placeholders_too(tmp_path: Path) -> None:
    (tmp_path / "file.sh").write_text('image="${image}" "$image"')
    assert template(str(tmp_path / "module.py"), "file.sh", image="a ${b}") == 'image="a ${b}" "$image"'
    with pytest.raises(ManifestError):
        template(str(tmp_path / "module.py"), "file.sh")
