"""Manifests of components, and files of machines: static text beside the code, with placeholders for inputs.

    objects = manifest(__file__, image=inputs.image(NAME), replicas=2)

A text that consists of a placeholder, `${replicas}`, becomes its value of any type; within a longer text, a placeholder
becomes the value as text. A placeholder without a value is an error, and so is a value without a placeholder.

A manifest is read when it is first used, and kept as JSON: each call decodes it again, so its objects belong to the
caller, who adapts what depends on more than a value.
"""

import re
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from kube.objects import Object
from kube.yaml import Budget, load

_PLACEHOLDER = re.compile(r"\$\{([a-z0-9_]+)\}")
_IN_JSON = re.compile(rf'"{_PLACEHOLDER.pattern}"|{_PLACEHOLDER.pattern}')
_DOCUMENT_START = re.compile("^---$", re.MULTILINE)
_MOST_VALUES = 20_000


class ManifestError(ValueError):
    """Placeholders and values of a file do not match."""


def manifest(module: str, file: str = "manifest.yaml", /, **values: Any) -> list[Object]:
    """Objects of a file, in its order.

    Args:
        module: `__file__` of the module beside the file.
        file: its path from there.
        values: by the name of their placeholder.

    Raises:
        ManifestError: there is a placeholder without a value, or a value without a placeholder.
    """
    text = _read_as_json(module, file)
    _check(text, file, values)

    def value(found: re.Match[str]) -> str:
        whole, part = found.groups()
        return _json(values[whole]) if whole else _json(str(values[part]))[1:-1]

    filled: list[Object] = orjson.loads(_IN_JSON.sub(value, text))
    return filled


def template(module: str, file: str, /, **values: str) -> str:
    """Text of a file in another format. Args: as of `manifest`. Raises ManifestError."""
    text = _read(module, file)
    _check(text, file, values)
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


def of_kind(objects: Iterable[Object], kind: str) -> Object:
    """The only object of a kind."""
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def without(objects: Iterable[Object], *kinds: str) -> list[Object]:
    """All objects except those of some kinds."""
    return [each for each in objects if each["kind"] not in kinds]


@cache
def _read(module: str, file: str) -> str:
    return (Path(module).parent / file).read_text()


@cache
def _read_as_json(module: str, file: str) -> str:
    """A list of all documents of a manifest."""
    budget = Budget(_MOST_VALUES, unique_keys=True)
    parts = _DOCUMENT_START.split((Path(module).parent / file).read_text())
    return _json([load(each, budget=budget) for each in parts])


@cache
def _placeholders(text: str) -> frozenset[str]:
    return frozenset(_PLACEHOLDER.findall(text))


def _check(text: str, file: str, values: Collection[str]) -> None:
    names = _placeholders(text)
    if names != set(values):
        wrong = ", ".join(sorted(names ^ set(values)))
        raise ManifestError(f"{file}: {wrong}: only a placeholder or only a value; give each placeholder a value")


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
