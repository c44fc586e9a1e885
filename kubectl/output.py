"""Output: data to stdout, all else to stderr; colours only on a terminal.

Nothing else in this package writes to either. Text for people is escaped by `kube.visible_text`; JSON and YAML are the
unchanged values, in characters that a terminal shows.
"""

import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, TextIO

import orjson
import yaml

from kube.visible_text import LINES, TEXT, printable, printable_json
from kube.yaml import Dumper
from kubectl.style import BLUE, GREEN, RED, YELLOW, Line, Word, rendered


class Output(StrEnum):
    """Output formats of commands that show a table."""

    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class Form(StrEnum):
    """Output formats of commands that show text."""

    JSON = "json"
    YAML = "yaml"


# --- data


def show(lines: Iterable[Line]) -> None:
    """Write text to stdout."""
    colors = has_colors(sys.stdout)
    for line in lines:
        sys.stdout.write(rendered(line, colors=colors) + "\n")
    sys.stdout.flush()


def show_data(data: Any, form: str) -> None:
    """Write one value as JSON or YAML."""
    write(as_json(data) if form == Form.JSON else as_yaml([data]))


def show_objects(objects: Sequence[Any], form: Form) -> None:
    """Write a List in JSON, or documents of YAML."""
    if form is Form.JSON:
        write(as_json({"apiVersion": "v1", "kind": "List", "items": objects}))
    else:
        write("".join(f"---\n{as_yaml([obj])}" for obj in objects))


def write(text: str) -> None:
    """Write a result of `as_json`, `as_yaml` or `as_written`."""
    sys.stdout.write(text)
    sys.stdout.flush()


def as_json(data: Any) -> str:
    return printable_json(orjson.dumps(data, option=orjson.OPT_INDENT_2)).decode() + "\n"


def as_yaml(documents: Iterable[Any]) -> str:
    text: str = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
    return printable(text, keep=LINES)


def as_written(text: str) -> str:
    """Text of others: unchanged, unless stdout is a terminal."""
    return printable(text, keep=TEXT) if sys.stdout.isatty() else text


class _Dumper(Dumper):
    """Also quotes texts that have to be escaped."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        if printable(text, keep=LINES) == text:
            return super().represent_text(text)
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"')


# --- progress


def begin(text: str) -> None:
    _say(Word("►", BLUE), text)


def waiting(text: str) -> None:
    _say(Word("◎", BLUE), text)


def done(text: str) -> None:
    _say(Word("✔", GREEN), text)


def warn(text: str) -> None:
    _say(Word("⚠", YELLOW), text)


def failed(text: str, *details: str) -> None:
    _say(Word("✗", RED), text, *details)


def crashed(program: str, error: BaseException) -> None:
    failed(f"this is a defect of {program}:", *"".join(traceback.format_exception(error)).rstrip("\n").split("\n"))


def _say(mark: Word, text: str, *details: str) -> None:
    for line in ([mark, " ", text], *(["  ", detail] for detail in details)):
        sys.stderr.write(rendered(line, colors=has_colors(sys.stderr)) + "\n")
    sys.stderr.flush()


def has_colors(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
