"""Where words go: data to stdout, all else to stderr; colours only on a terminal."""

import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, TextIO

import orjson
import yaml

from agent.yaml_dialect import plain_scalar
from kubectl_mr.style import BLUE, GREEN, RED, YELLOW, Line, Word, rendered


class Output(StrEnum):
    """Of what is shown as a table."""

    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class Form(StrEnum):
    """Of what is shown as text."""

    JSON = "json"
    YAML = "yaml"


# --- data


def show(lines: Iterable[Line]) -> None:
    """Text on stdout."""
    colors = has_colors(sys.stdout)
    for line in lines:
        sys.stdout.write(rendered(line, colors=colors) + "\n")
    sys.stdout.flush()


def show_data(data: Any, form: str) -> None:
    """One value as JSON or YAML."""
    write(as_json(data) if form == Form.JSON else as_yaml([data]))


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def as_json(data: Any) -> str:
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n"


def as_yaml(documents: Iterable[Any]) -> str:
    text: str = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
    return text


class _Dumper(yaml.SafeDumper):
    """Texts that other readers of YAML might take for numbers, times or truth values are quoted."""

    def ignore_aliases(self, _: object) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    one_line = "" if plain_scalar(text) == text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else one_line)


_Dumper.add_representer(str, _text)


# --- progress


def begin(text: str) -> None:
    _say(Word("►", BLUE), text)


def waiting(text: str) -> None:
    _say(Word("◎", BLUE), text)


def done(text: str) -> None:
    _say(Word("✔", GREEN), text)


def warn(text: str) -> None:
    _say(Word("⚠", YELLOW), text)


def failed(text: str) -> None:
    _say(Word("✗", RED), text)


def _say(mark: Word, text: str) -> None:
    sys.stderr.write(rendered([mark, " ", text], colors=has_colors(sys.stderr)) + "\n")
    sys.stderr.flush()


def has_colors(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
