"""`python -m tests.matrix`: the tests that show whether a version of Kubernetes is supported, on several of them.

Each version is built, if it is not in the cache, and each set of tests runs on it by itself, with clusters of its own.
Reports and outputs are left in `build/matrix`. The rows that come out replace those of the table in `docs/testing.md`.

Arguments are the versions, such as `1.30`; by default the oldest, the middle and the newest.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from xml.etree import ElementTree

from localprocesses import assets, versions
from localprocesses.local import LocalProcessError

_PROJECT = Path(__file__).parents[1]
_REPORTS = _PROJECT / "build" / "matrix"
_DOCUMENT = _PROJECT / "docs" / "testing.md"
SETS: Mapping[str, tuple[str, ...]] = {
    "demo": ("cluster/test_demo.py",),
    "conformance": ("conformance",),
    "end-to-end webhooks": ("cluster/test_webhooks_end_to_end*.py",),
    "plugin": ("cluster/test_kubectl_mr*.py",),
    "what a version lacks": ("cluster/test_kubernetes_versions.py", "cluster/test_managed_resource_warnings.py"),
}
"""Paths below `tests`."""
HEAD = f"| {' | '.join(('Kubernetes', *SETS, 'Not known there'))} |\n|{'---|' * (len(SETS) + 2)}\n"
LACKS = "lacks"
"""By this name tests record a property for each thing that they have not found."""


def oldest_middle_newest() -> list[str]:
    minors = list(versions.PATCHES)
    return [minors[0], minors[len(minors) // 2], minors[-1]]


def main(arguments: Sequence[str]) -> int:
    try:
        releases = [versions.release(text) for text in arguments or oldest_middle_newest()]
        directories = {release: assets.find_or_build(release).apiserver.parent for release in releases}
    except LocalProcessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    all_good = True
    for release, directory in directories.items():
        reports = [_run(name, release, directory) for name in SETS]
        _DOCUMENT.write_text(with_row(_DOCUMENT.read_text(), release, row(release, reports)))
        print(row(release, reports), flush=True)
        all_good &= all(is_good(report) for report in reports)
    return 0 if all_good else 1


def _run(name: str, release: str, directory: Path) -> ElementTree.Element:
    """The report of a set, in the form of JUnit."""
    report = _REPORTS / release / f"{name.replace(' ', '-')}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    paths = [str(path) for pattern in SETS[name] for path in sorted((_PROJECT / "tests").glob(pattern))]
    command = [sys.executable, "-m", "pytest", "-n", "2", f"--junitxml={report}", *paths]
    print(f"{release}: {name}, with output in {report.with_suffix('.log')}", file=sys.stderr, flush=True)
    with report.with_suffix(".log").open("w") as output:
        environment = {**os.environ, "KUBEBUILDER_ASSETS": str(directory)}
        subprocess.run(command, cwd=_PROJECT, env=environment, stdout=output, stderr=output, check=False)
    if not report.exists():
        raise SystemExit(f"the tests have not begun, see {report.with_suffix('.log')}")
    return ElementTree.parse(report).getroot()


def counts(report: ElementTree.Element) -> Counter[str]:
    """How many tests `passed`, `failed` and were `skipped`."""
    return Counter(map(_outcome, report.iter("testcase")))


def _outcome(case: ElementTree.Element) -> str:
    reported = {part.tag for part in case}
    if reported & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in reported else "passed"


def is_good(report: ElementTree.Element) -> bool:
    found = counts(report)
    return found["passed"] > 0 and not found["failed"]


def lacking(report: ElementTree.Element) -> set[str]:
    """What the version does not have, as tests have recorded it."""
    return {reported.get("value", "") for reported in report.iter("property") if reported.get("name") == LACKS}


def row(release: str, reports: Sequence[ElementTree.Element]) -> str:
    cells = [
        ", ".join(f"{found[word]} {word}" for word in ("passed", "failed", "skipped") if found[word])
        for found in map(counts, reports)
    ]
    unknown = ", ".join(f"`{thing}`" for thing in sorted(set().union(*map(lacking, reports)))) or "-"
    return f"| {' | '.join((release, *cells, unknown))} |"


def with_row(document: str, release: str, row: str) -> str:
    """The document, with this row in its table in the place of an older one of the release."""
    before, head, rest = document.partition(HEAD)
    if not head:
        raise SystemExit(f"{_DOCUMENT} has no table with the head\n{HEAD}")
    lines = rest.splitlines(keepends=True)
    old = list(takewhile(lambda line: line.startswith("|"), lines))
    rows = {line.split()[1]: line for line in old} | {release: f"{row}\n"}
    ordered = sorted(rows, key=lambda version: [int(number) for number in version.split(".")])
    return "".join([before, head, *(rows[version] for version in ordered), *lines[len(old) :]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
