"""`python -m tests.coverage_table`: which branches of each package the tests took, and what they did not reach.

Reads the data of `coverage combine` in the current folder; `make coverage` makes it. Arguments limit the list of what
was not reached to these packages, such as `kube agent.shared.network_policy`.
"""

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import PurePath
from typing import Any

import coverage

_FIGURES = ("num_statements", "missing_lines", "num_branches", "missing_branches")
_DEPTH = {"agent": 3}
"""Folders that name a package; the other rooms are one package each."""


def main(chosen: tuple[str, ...]) -> None:
    files = _files()
    packages: dict[str, Counter[str]] = {}
    for path, file in files.items():
        packages.setdefault(_package(path), Counter()).update({name: file["summary"][name] for name in _FIGURES})
    print(f"{'package':52}{'lines':>8}{'missed':>8}{'branches':>10}{'missed':>8}{'taken':>9}")
    for name, figures in [*sorted(packages.items()), ("all", sum(packages.values(), Counter()))]:
        missed, branches = figures["missing_branches"], figures["num_branches"]
        taken = f"{100 * (branches - missed) / branches:.1f} %" if branches else "-"
        lines = f"{figures['num_statements']:8}{figures['missing_lines']:8}"
        print(f"{name:52}{lines}{branches:10}{missed:8}{taken:>9}")
    print("\nNot reached (lines, and branches as line->line):")
    for path, file in sorted(files.items()):
        missing = [*_ranges(file["missing_lines"]), *_branches(file)]
        if missing and (not chosen or _package(path) in chosen):
            print(f"  {path}: {', '.join(missing)}")


def _files() -> dict[str, Any]:
    measured = coverage.Coverage()
    measured.load()
    with tempfile.NamedTemporaryFile() as report:
        measured.json_report(outfile=report.name)
        files: dict[str, Any] = json.load(report)["files"]
    return files


def _package(path: str) -> str:
    folders = PurePath(path).parent.parts
    return ".".join(folders[: _DEPTH.get(folders[0], 1)])


def _ranges(lines: Iterable[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(lines), key=lambda numbered: numbered[1] - numbered[0]):
        first, *rest = (line for _, line in run)
        yield f"{first}-{rest[-1]}" if rest else f"{first}"


def _branches(file: Any) -> Iterator[str]:
    """Those that begin at a line that was reached; a negative line is the end of a function."""
    for line, to in file["missing_branches"]:
        if line not in file["missing_lines"]:
            yield f"{line}->{to if to > 0 else 'exit'}"


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
