"""What `helm template` prints: manifests, each under a comment with the file it is from, or an error."""

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
"""How errors of a chart begin that was not even loaded."""
_ARCHIVE = b"\x1f\x8b\x08"
_SHORTEST_HEADER = 10
_SECRET = re.compile(r"auth|credential|key|passphrase|passw|secret|token", re.IGNORECASE)
_SHORTEST_SECRET = 4
_MASK = "***"
_IN_MEMORY = re.compile(r"/proc/self/fd/\d+")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Attributes: file: in the chart, `chart/templates/x.yaml`."""

    file: str
    text: str


def manifests(output: str) -> list[Manifest]:
    """In the order of installation."""
    parts = _SOURCE.split(output)
    return [Manifest(file, text) for file, text in zip(parts[1::2], parts[2::2], strict=True) if text.strip()]


def not_loadable(archive: bytes) -> str:
    """Why it can't be a packed chart, in the words of who unpacks it; empty: it may be one."""
    problem = ""
    if not archive:
        problem = "EOF"
    elif len(archive) < _SHORTEST_HEADER:
        problem = "unexpected EOF"
    elif not archive.startswith(_ARCHIVE):
        problem = "gzip: invalid header"
    return f"can't load chart from archive: {problem}" if problem else ""


def error_text(printed: str, values: Mapping[str, Any]) -> str:
    """The error among what was printed, without warnings and advice for those who use it by hand.

    Args: values: which the chart was given. Those whose names are of secrets are left out: many may read errors.
    """
    found = _ERROR.search(printed)
    said = printed[found.end() :] if found else printed
    for secret in sorted(_secrets(values), key=len, reverse=True):
        said = said.replace(secret, _MASK)
    said = _IN_MEMORY.sub("chart", said.replace(_HINT, "")).strip()
    if said.startswith(_UNSORTED):
        said = f"failed to sort manifests: {said}"
    elif said.startswith(_UNLOADED):
        said = f"can't load chart from archive: {said}"
    half = _LONGEST_ERROR // 2  # where comes first, and why comes last
    return said if len(said) <= _LONGEST_ERROR else f"{said[:half]} … {said[-half:]}"


def _secrets(values: Any, *, is_secret: bool = False) -> Iterator[str]:
    """What is below names of secrets, at any depth."""
    if isinstance(values, Mapping):
        for name, value in values.items():
            yield from _secrets(value, is_secret=is_secret or bool(_SECRET.search(name)))
    elif isinstance(values, list):
        for value in values:
            yield from _secrets(value, is_secret=is_secret)
    elif is_secret and isinstance(values, str) and len(values) >= _SHORTEST_SECRET:
        yield values
