"""What a chart of this project makes of values: by Helm where it is installed, and by the few expressions it consists of."""

import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from kube.objects import Object

KUBERNETES = "1.33"
_CHOICE = re.compile(r"\{\{ if (\S+) \}\}(.*?)\{\{ else \}\}(.*?)\{\{ end \}\}")
_ACTION = re.compile(r"\{\{ (.*?) \}\}")
_FUNCTIONS: Mapping[str, Callable[..., str]] = {
    "quote": lambda text: json.dumps(text, ensure_ascii=False),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "trunc": lambda text, length: text[: int(length)],
}


def by_helm(chart: Path, values: Mapping[str, Any], namespace: str, *, program: str = "helm") -> list[Object]:
    """Of a directory or an archive."""
    command = [program, "template", "any", str(chart), "--namespace", namespace, "--kube-version", KUBERNETES]
    given = json.dumps(values)
    done = subprocess.run([*command, "--values", "-"], input=given, check=True, capture_output=True, text=True)
    return list(yaml.safe_load_all(done.stdout))


def by_expressions(chart: Path, values: Mapping[str, Any], namespace: str) -> list[Object]:
    """Of a directory. Raises KeyError for expressions that this does not know."""
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    template = (chart / "templates" / "objects.yaml").read_text()
    return list(yaml.safe_load_all(_rendered(template, _over(defaults, values), namespace)))


def _over(defaults: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(defaults)
    for name, value in values.items():
        merged[name] = _over(defaults[name], value) if isinstance(value, dict) else value
    return merged


def _rendered(template: str, values: Mapping[str, Any], namespace: str) -> str:
    def named(path: str) -> Any:
        found: Any = {"Values": values, "Release": {"Namespace": namespace}}
        for name in path.removeprefix(".").split("."):
            found = found[name]
        return found

    def first(term: str) -> Any:
        match term.split():
            case ["tpl", path, "."]:
                return _rendered(named(path), values, namespace)
            case ["toJson", path]:
                return json.dumps(named(path))
            case [path]:
                return named(path)
        raise KeyError(term)

    def result(action: re.Match[str]) -> str:
        term, *functions = action[1].split(" | ")
        value = first(term)
        for function in functions:
            name, *arguments = function.split()
            value = _FUNCTIONS[name](value, *arguments)
        return str(value)

    chosen = _CHOICE.sub(lambda choice: choice[2] if named(choice[1]) else choice[3], template)
    return _ACTION.sub(result, chosen)
