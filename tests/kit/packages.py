"""Top-level Python packages of the project, read from the folders."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

ALL = frozenset(file.parent.name for file in PROJECT.glob("*/__init__.py"))
"""All packages but `tests`, whose subpackages are imported from there."""
NOT_INSTALLED = frozenset({"benchmarks", "release"})
INSTALLED = ALL - NOT_INSTALLED
"""Packages in the wheel."""
