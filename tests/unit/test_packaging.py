"""Wheel, image and checks cover all packages."""

import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

from kit.packages import ALL, INSTALLED, PROJECT

SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())
TOOLS = SETTINGS["tool"]
SETUPTOOLS = TOOLS["setuptools"]
LINTER = TOOLS["importlinter"]


def contract(words: str) -> dict[str, list[str]]:
    (found,) = (each for each in LINTER["contracts"] if words in each["name"])
    return {key: value for key, value in found.items() if isinstance(value, list)}


LISTS = {
    "the wheel": (INSTALLED, [name.removesuffix("*") for name in SETUPTOOLS["packages"]["find"]["include"]]),
    "mypy": (ALL, [name for name in TOOLS["mypy"]["packages"] if not (PROJECT / "tests" / name).exists()]),
    "coverage": (INSTALLED, TOOLS["coverage"]["run"]["source"]),
    "import-linter": (ALL, LINTER["root_packages"]),
    "layers": (ALL, [name for layer in contract("Layers:")["layers"] for name in layer.split(" | ")]),
    "import cycles": (ALL, contract("Siblings without circles")["ancestors"]),
    "importers of cryptography": (ALL, contract("Cryptography")["source_modules"]),
}


@pytest.mark.parametrize("name", LISTS)
def test_each_list_has_all_packages(name: str) -> None:
    packages, listed = LISTS[name]
    assert sorted(listed) == sorted(packages)


@pytest.mark.parametrize("package", sorted(INSTALLED))
def test_all_files_of_a_package_are_packed(package: str) -> None:
    files = {file for file in (PROJECT / package).rglob("*") if file.is_file() and file.suffix not in {".py", ".pyc"}}
    packed = {
        file
        for name, patterns in SETUPTOOLS["package-data"].items()
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


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its dependencies, and without this checkout."""
    source, environment = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("environment")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    for name in INSTALLED:
        shutil.copytree(PROJECT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    venv.create(environment, symlinks=True)
    library = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))
    # Only the folder is added: *.pth files in it, such as that of an editable installation, have no effect.
    (library / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(environment / "bin" / "python")]
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
    subprocess.run([*pip, "install", *options, str(source)], check=True, timeout=120)
    return environment


@pytest.mark.parametrize("script", SETTINGS["project"]["scripts"])
def test_each_console_script_of_the_wheel_runs_from_any_directory(script: str, environment: Path) -> None:
    completes = script.startswith("kubectl_complete")
    command = [str(environment / "bin" / script), *([] if completes else ["--help"])]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
