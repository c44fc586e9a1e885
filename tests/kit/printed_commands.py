"""Commands in texts that programs print: string literals, calls that make a command of kubectl, and templates of pages.

A placeholder stands as `{name}`, where `name` is the last word of its expression, and as `{}` if there is none. A command
ends where a sentence does, or a bracket or a quotation.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = (
    *("agent", "components", "config", "devcluster", "gardenapi", "gardener", "image", "kube", "kubectl"),
    *("localprocesses", "localprovider", "process", "release", "webhooks"),
)
_VERBS = (
    *("annotate", "api-resources", "apply", "attach", "auth", "certificate", "cluster-info", "config", "cordon", "cp"),
    *(
        "create",
        "debug",
        "delete",
        "describe",
        "diff",
        "drain",
        "edit",
        "events",
        "exec",
        "explain",
        "expose",
        "gardener",
    ),
    *("get", "kustomize", "label", "logs", "mr", "mss", "patch", "port-forward", "proxy", "replace", "rollout", "run"),
    *("scale", "set", "taint", "top", "uncordon", "version", "wait", r"-{1,2}[a-z][a-z-]*", r"\{\w*\}"),
)
_COMMAND = re.compile(
    rf"(?<![\w/.-])(?:kubectl (?:{'|'.join(_VERBS)})(?![a-z])|(?:\.venv/bin/)?python -m [a-z]|make [a-z-]+(?= |$|[,;`)]))"
    r"(?:'[^']*'|[^;`()\n'\"])*"
)
_TARGETS = frozenset(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
_SENTENCE = re.compile(
    r"(?:[,.:]| #| {2,}|\|)(?: .*|$)| (?:and|or|shows?|installs|has|which|in the|waits|of|tries|makes|is) .*| →.*| \(.*",
    re.DOTALL,
)
_MAKERS = {
    "command": "kubectl",
    "plugin_command": "kubectl gardener",
    "about_it": "kubectl gardener why",
    "commanded": "kubectl annotate shoot",
    "_annotated": "kubectl annotate shoot",
}
"""Functions of `kubectl.garden` that make commands."""


@dataclass(frozen=True, slots=True, order=True)
class Printed:
    command: str
    file: str
    line: int


def printed() -> list[Printed]:
    return sorted({found for package in PACKAGES for found in _of_package(PROJECT / package)})


def _of_package(directory: Path) -> Iterator[Printed]:
    for file in sorted(directory.rglob("*.py")):
        for text, line in _texts(ast.parse(file.read_text()), makes="kubectl/garden" in str(file)):
            yield from (Printed(each, str(file.relative_to(PROJECT)), line) for each in commands_in(text))
    for file in sorted(directory.rglob("*.html")):
        for number, text in enumerate(file.read_text().splitlines(), 1):
            plain = re.sub(
                r"\{%.*?%\}", "", re.sub(r"</?[a-z]+[^>]*>", "`", re.sub(r"\{\{ *(\w+).*?\}\}", r"{\1}", text))
            )
            yield from (Printed(each, str(file.relative_to(PROJECT)), number) for each in commands_in(plain))


def commands_in(text: str) -> Iterator[str]:
    for found in _COMMAND.finditer(text):
        command = _SENTENCE.sub("", found[0]).strip()
        if not command.startswith("make ") or command.split()[1] in _TARGETS:
            yield command


def _texts(tree: ast.Module, *, makes: bool) -> Iterator[tuple[str, int]]:
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in documents or id(node) in inner:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno
        elif isinstance(node, ast.JoinedStr):
            yield "".join(map(_part, node.values)), node.lineno
        elif makes and isinstance(node, ast.Call) and (maker := _MAKERS.get(_name(node.func))):
            arguments = " ".join(_argument(each) for each in node.args)
            yield f"{maker} {arguments}".strip(), node.lineno


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.FormattedValue)
    if isinstance(node.value, ast.Call) and _MAKERS.get(_name(node.value.func)):
        return ""  # comes by itself
    return f"{{{_name(node.value)}}}"


def _argument(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_part, node.values))
    return f"{{{_name(node)}}}"


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Call():
            return _name(node.func)
    return ""
