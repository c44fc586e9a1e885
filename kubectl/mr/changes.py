"""Differences between two objects, as text."""

import difflib
from collections.abc import Iterator
from typing import Any

import orjson

from gardener.managed_resource.changes import MISSING, Change
from kubectl.output import as_yaml
from kubectl.style import DIM, GREEN, RED, Line, Word


def described(change: Change) -> list[Line]:
    """Lines of a change: the path, then the old and the new value, each with its mark."""
    lines: list[Line] = [["  ", change.path]]
    if _is_long(change.before) and _is_long(change.after):
        return [*lines, *_lines_of_text(change.before, change.after)]
    if change.before is not MISSING:
        lines += _marked("- ", change.before, RED)
    if change.after is not MISSING:
        lines += _marked("+ ", change.after, GREEN)
    return lines


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value


def _marked(mark: str, value: Any, color: str) -> list[Line]:
    text = value if isinstance(value, str) else as_yaml([value]) if value else orjson.dumps(value).decode()
    return [["    ", Word(f"{mark}{line}", color)] for line in _lines(text.removesuffix("...\n"))]


def _lines_of_text(before: str, after: str) -> Iterator[Line]:
    compared = difflib.unified_diff(_lines(before), _lines(after), lineterm="", n=1)
    for line in list(compared)[2:]:
        color = {"+": GREEN, "-": RED, "@": DIM}.get(line[:1], "")
        mark, text = line[:1], line[1:]
        yield ["    ", Word(line if mark == "@" else f"{mark} {text}", color)]


def _lines(text: str) -> list[str]:
    """Split by line breaks alone: other line separators are part of the text, and may differ."""
    return text.removesuffix("\n").split("\n")
