"""Which feature gates and admission plugins a version of Kubernetes knows.

A component does not start with one that it does not know. The tables beside this module have a line for each name: the
first minor version with it, none for the oldest of the tables; and the last one, none for the newest. They were taken
from the sources of these versions of Kubernetes, all components together.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from gardener.garden.versions import Version, parse_version

OLDEST, NEWEST = (1, 25), (1, 36)
"""The versions that the tables are about."""
Minor = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Table:
    """Args: spans: the first and the last minor version that knows a name."""

    spans: Mapping[str, tuple[Minor, Minor]]

    def unknown(self, names: Iterable[str], version: Version) -> list[str]:
        """The names that this version does not know, sorted.

        Nothing is said about versions before those of the table. Later ones know names that are not in it.
        """
        return sorted(name for name in names if self._is_unknown(name, (version.major, version.minor)))

    def _is_unknown(self, name: str, minor: Minor) -> bool:
        if minor < OLDEST:
            return False
        span = self.spans.get(name)
        if span is None:
            return minor <= NEWEST
        first, last = span
        return minor < first or (minor > last and last != NEWEST)


@cache
def feature_gates() -> Table:
    return _read("feature_gates.csv")


@cache
def admission_plugins() -> Table:
    return _read("admission_plugins.csv")


def _read(file: str) -> Table:
    lines = resources.files(__package__).joinpath(file).read_text().splitlines()
    return Table(
        {line["name"]: (_minor(line["first"], OLDEST), _minor(line["last"], NEWEST)) for line in csv.DictReader(lines)}
    )


def _minor(written: str, default: Minor) -> Minor:
    parsed = parse_version(written)
    return default if parsed is None else (parsed.major, parsed.minor)
