"""Output of `helm template`: manifests, each below a comment with its source file, or an error."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_SOURCE = re.compile(r"^---\n# Source: (.*)\n", re.MULTILINE)
_ERROR = re.compile(r"^Error: ", re.MULTILINE)
_HINT = "Use --debug flag to render out invalid YAML"
_LONGEST_ERROR = 2048
_UNSORTED = ("YAML parse error on ",)
_UNLOADED = (
    "Chart.yaml file is missing",
    "cannot load ",
    "chart metadata ",
    "chart.metadata.",
    "chart file ",
    "chart illegally ",
    "error unpacking ",
    "file '",
    "gzip: ",
    "invalid chart ",
    "unexpected EOF",
    "validation: chart.metadata",
)
"""Prefixes of errors of a chart that could not be loaded."""
_ARCHIVE = b"\x1f\x8b\x08"
_SHORTEST_HEADER = 10
_SECRET = re.compile(r"auth|credential|key|passphrase|passw|secret|token", re.IGNORECASE)
_SHORTEST_SECRET = 4
_MASK = "***"
_IN_MEMORY = re.compile(r"/proc/self/fd/\d+")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest.

    Attributes:
        file: path in the chart, like `chart/templates/x.yaml`.
    """

    file: str
    text: str


def manifests(output: str) -> list[Manifest]:
    """Manifests in installation order."""
    parts = _SOURCE.split(output)
    return [Manifest(file, text) for file, text in zip(parts[1::2], parts[2::2], strict=True) if text.strip()]


def not_loadable(archive: bytes) -> str:
    """Reason why the archive can't be a chart, worded like the unpacker's error; empty if it may be one."""
    problem = ""
    if not archive:
        problem = "EOF"
    elif len(archive) < _SHORTEST_HEADER:
        problem = "unexpected EOF"
    elif not archive.startswith(_ARCHIVE):
        problem = "gzip: invalid header"
    return f"can't load chart from archive: {problem}" if problem else ""


def error_text(printed: str, values: Mapping[str, Any]) -> str:
    """Error in the output, without warnings and hints for interactive use.

    `values` are those of the chart. Values with names of secrets are masked, since many users may read errors.
    """
    found = _ERROR.search(printed)
    reported = printed[found.end() :] if found else printed
    for secret in sorted(_secrets(values), key=len, reverse=True):
        reported = reported.replace(secret, _MASK)
    reported = _IN_MEMORY.sub("chart", reported.replace(_HINT, "")).strip()
    if reported.startswith(_UNSORTED):
        reported = f"failed to sort manifests: {reported}"
    elif reported.startswith(_UNLOADED):
        reported = f"can't load chart from archive: {reported}"
    half = _LONGEST_ERROR // 2  # the start has the location, the end the cause
    return reported if len(reported) <= _LONGEST_ERROR else f"{reported[:half]} … {reported[-half:]}"


def _secrets(values: Any, *, is_secret: bool = False) -> Iterator[str]:
    """Yield the strings below names of secrets, at any depth."""
    if isinstance(values, Mapping):
        for name, value in values.items():
            yield from _secrets(value, is_secret=is_secret or bool(_SECRET.search(name)))
    elif isinstance(values, list):
        for value in values:
            yield from _secrets(value, is_secret=is_secret)
    elif is_secret and isinstance(values, str) and len(values) >= _SHORTEST_SECRET:
        yield values
