"""The programs that measure are not installed with the project: they are found beside it."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))
