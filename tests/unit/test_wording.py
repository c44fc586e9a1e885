"""Docstrings and comments of the product, and its documentation, in the words of the field.

A docstring starts with a verb or a noun: what follows a preposition or a question word has no subject. `test_glossary`
has words that identifiers do without, too.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from kit.packages import ALL, PROJECT
from kit.wording import CODE, misused, problems

_BLOCK = re.compile(r"^( *)```.*?^\1```$|<!--.*?-->", re.DOTALL | re.MULTILINE)
QUOTING = frozenset(
    {
        "alerts",
        "configuration",
        "gardenlet-configuration",
        "kubectl-gardener",
        "kubectl-mr",
        "limits",
        "metrics",
        "rights",
    }
)
"""Pages that quote what programs print, or that are generated from code."""


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Line and text; those of attributes, too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for each in node.body:
                match each:
                    case ast.Expr(value=ast.Constant(value=str() as text)):
                        yield each.lineno, text


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string with a space, such as a message; `{}` stands for each inserted value."""
    tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text) if " " in text and id(node) not in parts:
                yield node.lineno, text
            case ast.JoinedStr(values=values):
                texts = [part.value if isinstance(part, ast.Constant) else "{}" for part in values]
                yield node.lineno, "".join(map(str, texts))


def comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.parametrize("package", sorted(ALL - {"tests"}))
def test_code_and_messages_have_plain_words(package: str) -> None:
    found = []
    for file in sorted((PROJECT / package).rglob("*.py")):
        source = file.read_text()
        lines = [(line, each) for line, text in docstrings(source) for each in problems(text)]
        texts = [*comments(source), *literals(source)]
        lines += [(line, each) for line, text in texts for each in misused(CODE.sub("", text))]
        found += [f"{file.relative_to(PROJECT)}:{line}: {each}" for line, each in lines]
    assert found == []


LISTS = frozenset(
    PROJECT / "tests" / name for name in ("kit/wording.py", "unit/test_wording.py", "unit/test_glossary.py")
)
"""Definitions of the words, and examples."""


def names(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each test, as a sentence."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.replace("_", " ")


def test_tests_have_plain_words() -> None:
    found = []
    for file in sorted(set((PROJECT / "tests").rglob("*.py")) - LISTS):
        source = file.read_text()
        texts = [*docstrings(source), *comments(source), *names(source)]
        lines = [(line, each) for line, text in texts for each in misused(CODE.sub("", text))]
        found += [f"{file.relative_to(PROJECT)}:{line}: {each}" for line, each in lines]
    assert found == []


def test_other_files_have_plain_words() -> None:
    kinds = [(PROJECT / "manifests", "*.yaml"), (PROJECT / "manifests", "*.json"), (PROJECT / "process", "static/*.*")]
    files = [file for folder, kind in kinds for file in folder.rglob(kind) if "crds" not in file.parts]
    files += [file for package in ALL for file in (PROJECT / package).rglob("*.html")]
    files += [PROJECT / name for name in ("Makefile", "Dockerfile", "CHANGELOG.md", "CONTRIBUTING.md")]
    found = {str(file.relative_to(PROJECT)): list(misused(re.sub(r"`[^`]*`", "", file.read_text()))) for file in files}
    assert {name: each for name, each in found.items() if each} == {}


def test_the_documentation_is_written_in_plain_words() -> None:
    pages = [page for page in (PROJECT / "docs").glob("*.md") if page.stem not in QUOTING]
    texts = {page.name: _BLOCK.sub("", page.read_text()) for page in [*pages, PROJECT / "README.md"]}
    found = {name: list(misused(re.sub(r"`[^`]*`", "", text))) for name, text in texts.items()}
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize(
    ("docstring", "problem"),
    [
        ("Of the Shoot's API server.", "starts with 'Of'"),
        ("Raises KubeError.", "starts with 'Raises'"),
        ("What the check came to.", "starts with 'What'"),
        ("Result, if anybody asked.", "'asked'"),
        ("Start it anew.", "'anew'"),
    ],
)
def test_a_problem_is_found(docstring: str, problem: str) -> None:
    (found,) = problems(docstring)
    assert found.startswith(problem)


@pytest.mark.parametrize(
    "source", ['"Somebody did it"', 'f"{name}: it says {text!r}"', 'log("it", hint="ask " f"anew {a}")']
)
def test_a_problem_of_a_message_is_found(source: str) -> None:
    assert [each for _, text in literals(source) for each in misused(text)] != []


@pytest.mark.parametrize("source", ["is_known('asked')", 'f"{said} is a name"', 'f"{asked(1)} requests"'])
def test_names_in_messages_are_left_alone(source: str) -> None:
    assert [each for _, text in literals(source) for each in misused(text)] == []


@pytest.mark.parametrize(
    "docstring", ["Whether `said` is set.", "Write it:\n\n        write(said)\n\n    Then read.", "Requested state."]
)
def test_names_and_examples_are_left_alone(docstring: str) -> None:
    assert list(problems(docstring)) == []
