"""Attacks that a program has to bear: run against a real one on this computer, bounded in number and time."""

import sys
from pathlib import Path

# What tests share lies beside this package, and is imported by tests as it is here.
sys.path.insert(0, str(Path(__file__).parents[1]))
