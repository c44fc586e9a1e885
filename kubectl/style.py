"""Text for values: words that may have a colour, tables, trees.

A `Word` is a string with its colour, so widths are counted without escape sequences, and the code that prints decides
whether there are colours at all. All text for people goes through `rendered`, which escapes it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Self

from kube.clock import parse_time, short_duration
from kube.visible_text import printable

GREEN, RED, YELLOW, BLUE, DIM, BOLD = "32", "31", "33", "34", "2", "1"

_GAP = "   "


class Word(str):
    """Piece of text in one colour."""

    color: str

    def __new__(cls, text: str, color: str = "") -> Self:
        word = super().__new__(cls, text)
        word.color = color
        return word


Line = Sequence[str]
"""Pieces of a line, one after the other."""


def rendered(line: Line, *, colors: bool) -> str:
    return "".join(_colored(piece) if colors else printable(piece) for piece in line).rstrip()


def _colored(piece: str) -> str:
    color = piece.color if isinstance(piece, Word) else ""
    return f"\033[{color}m{printable(piece)}\033[0m" if color and piece else printable(piece)


# --- tables


def table(rows: Sequence[Line], *, header: Line | None = None) -> list[Line]:
    """Rows of cells as lines, the columns aligned; the last cell of a row may be of any length."""
    return Columns().lines([*([header] if header is not None else []), *rows])


class Columns:
    """Table that can be continued: columns get wider when necessary, and stay so."""

    def __init__(self) -> None:
        self._widths: Sequence[int] = ()

    def lines(self, rows: Sequence[Line]) -> list[Line]:
        if not rows:
            return []
        widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
        self._widths = [max(pair) for pair in zip_longest(widths, self._widths, fillvalue=0)]
        return [_row(row, self._widths) for row in rows]


def _row(row: Line, widths: Sequence[int]) -> Line:
    pieces: list[str] = []
    for cell, width in zip(row[:-1], widths, strict=False):
        pieces += [cell, " " * (width - _width(cell)) + _GAP]
    return [*pieces, row[-1]]


def _width(cell: str) -> int:
    return len(printable(cell))


def shortened(text: str, width: int) -> str:
    """Cut out the middle if the text is too long: messages begin with their subject and end with the reason."""
    if len(text) <= width:
        return text
    begin = width * 2 // 5
    return f"{text[:begin]}…{text[len(text) - (width - begin - 1) :]}"


# --- trees


@dataclass(slots=True)
class Branch:
    """A line, its data for programs, and its children."""

    line: Line
    data: dict[str, str]
    children: list["Branch"] = field(default_factory=list)


def tree(root: Branch) -> list[Line]:
    return [root.line, *_below(root, "")]


def _below(branch: Branch, indent: str) -> Iterable[Line]:
    for position, child in enumerate(branch.children):
        last = position == len(branch.children) - 1
        yield [indent, "└── " if last else "├── ", *child.line]
        yield from _below(child, indent + ("    " if last else "│   "))


# --- values


def age(moment: str | None, now: datetime) -> str:
    """Time since a moment of the API, in kubectl's format."""
    return short_duration((now - parse_time(moment)).total_seconds()) if moment else "<unknown>"


_UNITS = ("KiB", "MiB", "GiB")


def size(count: float) -> str:
    """Bytes in readable units."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in _UNITS:
        count /= 1024
        if count < 1024 or unit == _UNITS[-1]:
            break
    return f"{count:.1f} {unit}"


def counted(count: int, noun: str) -> str:
    """Format as `1 object`, `2 objects`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def short_list(names: Sequence[str], most: int = 5) -> str:
    """The first of many names."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
