"""`python -m tests.outages`: see `python -m tests.outages --help`."""

import sys
from pathlib import Path

# What tests share lies beside this package, and is imported by tests as it is here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from outages.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
