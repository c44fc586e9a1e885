"""What is no Python, and has to be in the package all the same."""

import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["setuptools"]
PACKAGES = [name.removesuffix("*") for name in SETTINGS["packages"]["find"]["include"]]


@pytest.mark.parametrize("package", PACKAGES)
def test_all_files_of_a_package_are_packed(package: str) -> None:
    files = {file for file in (PROJECT / package).rglob("*") if file.is_file() and file.suffix not in {".py", ".pyc"}}
    packed = {
        file
        for name, patterns in SETTINGS["package-data"].items()
        for pattern in patterns
        for file in (PROJECT / name.replace(".", "/")).glob(pattern)
    }
    assert files <= packed


def test_the_build_of_the_image_is_given_all_that_it_copies_and_nothing_else() -> None:
    copies = [
        line.split()[1:-1] for line in (PROJECT / "Dockerfile").read_text().splitlines() if line.startswith("COPY ")
    ]
    copied = {name for names in copies for name in names if not names[0].startswith("--from")}
    lines = (PROJECT / ".dockerignore").read_text().splitlines()
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == copied
