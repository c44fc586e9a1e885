"""Claims of `docs/threats.md`: its tests exist, and what is true of the source and the manifests themselves."""

import ast
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from localprocesses import helm_program
from vulnerability_audit import locked

PROJECT = Path(__file__).parents[2]
TESTS = PROJECT / "tests"
THREATS = (PROJECT / "docs/threats.md").read_text()
SHOWN: dict[str, list[str]] = yaml.safe_load((TESTS / "threats.yaml").read_text())
NAMED = sorted({tuple(test.split("::")) for tests in SHOWN.values() for test in tests})
REQUIREMENTS = sorted(PROJECT.glob("requirements*.txt"))
PROGRAMS = ("kube", "gardenapi", "config", "process", "components", "agent", "webhooks", "image")

_STARTS = {"subprocess", "pty", "multiprocessing", "pickle", "marshal", "shelve", "code", "runpy"}
_MAKES_CODE = {"eval", "exec", "compile", "__import__"}
_OF_OS = re.compile(r"system|popen|exec\w+|spawn\w+|posix_spawn\w*")
_LOADERS = {"CSafeLoader", "_Loader", "_Composer"}


# --- the list


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_each_test_that_is_named_exists(file: str, name: str) -> None:
    tree = ast.parse((TESTS / file).read_text())
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in functions


def test_each_threat_names_what_keeps_it_off_and_has_a_test() -> None:
    listed = re.sub(r"\n  ", " ", THREATS.partition("\n## Not protected against\n")[0])
    threats = re.findall(r"^- \*\*(.+?)\*\*: \S", listed, re.MULTILINE)
    assert len(threats) == len(re.findall(r"^- ", listed, re.MULTILINE)) > 40
    assert [re.sub(r"\[(.+?)\]\(.+?\)", r"\1", threat) for threat in threats] == list(SHOWN)
    assert all(SHOWN.values())


# --- the source


def _called(node: ast.Call) -> tuple[str, str]:
    """The module, if it looks like one, and the name."""
    match node.func:
        case ast.Name(id=name):
            return "", name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return module, name
    return "?", ""


def _imported(node: ast.AST) -> set[str]:
    match node:
        case ast.Import(names=names):
            return {alias.name.partition(".")[0] for alias in names}
        case ast.ImportFrom(module=str(module)):
            return {module.partition(".")[0]}
    return set()


def _suspicious(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        found |= _imported(node) & _STARTS
        if not isinstance(node, ast.Call):
            continue
        module, name = _called(node)
        if (not module and name in _MAKES_CODE) or (module == "os" and _OF_OS.fullmatch(name)):
            found.add(name)
        if module == "yaml" and name in {"load", "parse"}:
            given = [ast.unparse(argument) for argument in [*node.args[1:], *(k.value for k in node.keywords)]]
            if not given or given[0].rpartition(".")[2] not in _LOADERS:
                found.add(ast.unparse(node))
    return found


def test_the_programs_start_only_what_is_confined_and_make_no_code_of_data() -> None:
    files = [path for program in PROGRAMS for path in (PROJECT / program).rglob("*.py")]
    assert len(files) > 200
    found = {str(path.relative_to(PROJECT)): _suspicious(path.read_text()) for path in files}
    # Itself, with a command line that no data decides; and helm, after it has given up what it does not need.
    expected = {
        "agent/gardenlet/common/charts/confined.py": {"execve"},
        "agent/resource_manager/health/evaluation.py": {"subprocess"},
    }
    assert {path: what for path, what in found.items() if what} == expected


@pytest.mark.parametrize(
    "source",
    [
        *("import subprocess", "from pickle import loads", "eval(text)", "os.system('x')", "os.execv('x', [])"),
        *("yaml.load(text)", "yaml.load(text, yaml.Loader)", "yaml.load(text, Loader=yaml.UnsafeLoader)"),
    ],
)
def test_what_would_start_something_is_found(source: str) -> None:
    assert _suspicious(source)
    assert not _suspicious("yaml.load(text, yaml.CSafeLoader); re.compile('x'); os.open('x', 0)")


# --- what the image is built from


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_every_requirement_is_locked_with_hashes(path: Path) -> None:
    text = path.read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert lines
    for line in lines:
        assert re.match(r"[\w.\[\]-]+==[\w.+-]+ ", line), line
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), line


def test_the_image_installs_nothing_without_a_hash() -> None:
    text = (PROJECT / "Dockerfile").read_text().replace("\\\n", " ")
    installing = re.findall(r"pip[^&|]*? install [^&|]*", text)
    assert len(installing) > 2
    for command in installing:
        assert "--require-hashes" in command or "--no-index" in command, command
    assert not re.search(r"\b(curl|wget|git clone|ADD http)", text)


def test_the_image_is_built_on_a_digest_or_not_at_all() -> None:
    text = (PROJECT / "Dockerfile").read_text().replace("\\\n", " ")
    arguments = re.findall(r"^ARG (?:BASE|GO)\b.*$", text, re.MULTILINE)
    assert set(arguments) == {"ARG BASE", "ARG GO"}, "there is no default"
    first, *others = re.findall(r"^FROM (.*)$", text, re.MULTILINE)
    assert first == "${BASE:-Give-BASE-with-a-digest-see-docs/install.md} AS build", "not a name that an image can have"
    further = ["build AS write-sbom", "scratch AS sbom", "${GO:-${BASE}} AS helm", "${BASE} AS programs"]
    assert others == [*further, "programs AS gardenlet", "programs"]
    for name in ("BASE", "GO"):
        (check,) = re.findall(rf'^RUN (echo "\${{{name}}}" .*)$', text, re.MULTILINE)
        stage = text.index(f"FROM ${{{name}:-")
        assert stage < text.index(check) < text.index("COPY", stage), "before anything is made of it"
        _check_of_a_digest(name, check)


def _check_of_a_digest(name: str, check: str) -> None:
    digest = "@sha256:" + "0123456789abcdef" * 4
    for base, is_good in (
        (f"python:3.13-slim{digest}", True),
        (f"localhost:5000/python{digest}", True),
        ("python:3.13-slim", False),
        (f"python{digest[:-1]}", False),
        (f"python{digest}0", False),
        (f"python{digest.upper()}", False),
        ("", False),
    ):
        done = subprocess.run(["sh", "-c", check], check=False, capture_output=True, text=True, env={name: base})
        assert (done.returncode == 0) is is_good, base
        assert ("by its digest" in done.stderr) is not is_good


def test_the_image_has_the_helm_of_development() -> None:
    """Built from the same modules with the same flags, and found beside Python."""
    text = (PROJECT / "Dockerfile").read_text().replace("\\\n", " ")
    (build,) = re.findall(r"go build (.*)$", text, re.MULTILINE)
    version = helm_program.version()
    assert shlex.split(build.replace("${version}", version))[:2] == list(helm_program.flags())
    (listed,) = re.findall(r"version=\$\((go list .*?)\)", text)
    environment = {**os.environ, "GOWORK": "off", "GOPROXY": "off"}
    if shutil.which("go"):
        found = subprocess.check_output(shlex.split(listed), cwd=helm_program.MODULE, text=True, env=environment)
        assert found.strip() == version
    assert "COPY --from=helm /helm /app/bin/\n" in text
    assert "python3 -m venv --without-pip /app " in text


# --- what pods are given


@pytest.mark.parametrize("overlay", ["runtime", "target"])
def test_tokens_of_pods_are_projected_and_end_after_hours(overlay: str) -> None:
    documents = yaml.load_all((TESTS / "golden" / f"{overlay}.yaml").read_text(), yaml.CSafeLoader)
    deployments = [obj for obj in documents if obj and obj["kind"] == "Deployment"]
    assert deployments
    for deployment in deployments:
        spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
        assert spec["automountServiceAccountToken"] is False
        sources = [source for volume in spec["volumes"] for source in volume.get("projected", {}).get("sources", [])]
        tokens = [source["serviceAccountToken"] for source in sources if "serviceAccountToken" in source]
        assert tokens
        assert all(token["expirationSeconds"] <= 12 * 3600 for token in tokens)


def test_demos_need_no_tools_for_tests() -> None:
    """Their environment is small; see the Makefile."""
    programs, demo, everything = (
        set(locked((PROJECT / f"requirements{name}.txt").read_text())) for name in ("", "-demo", "-dev")
    )
    assert programs < demo < everything
    beside = {"click", "rich", "markdown-it-py", "mdurl", "pygments", "colorama", "setuptools"}
    assert {name for name, _ in demo - programs} == beside
