"""Conventions of Gardener programs are defined in one place."""

from pathlib import Path

from gardener.keys import GROUP

PROJECT = Path(__file__).parents[3]
PRODUCT = (
    "kube",
    "gardener",
    "gardenapi",
    "config",
    "process",
    "components",
    "agent",
    "webhooks",
    "image",
    "localprocesses",
    "kubectl",
    "devcluster",
)


def test_one_module_knows_the_group_of_labels_and_annotations() -> None:
    files = [file for layer in PRODUCT for file in (PROJECT / layer).rglob("*.py")]
    assert [file.relative_to(PROJECT).as_posix() for file in files if GROUP in file.read_text()] == ["gardener/keys.py"]
