"""`python -m tests.campaign`: see `python -m tests.campaign --help`."""

import sys
from pathlib import Path

# What tests share lies beside this package, and is imported by tests as it is here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
