"""`python -m gardener.api manifests/crds/garden` writes the CustomResourceDefinitions there, a file a kind."""

import sys
from pathlib import Path

from gardener.api.definition import files
from gardener.api.garden.definitions import DEFINITIONS


def write(directory: Path) -> None:
    """Definitions of kinds that are no more go."""
    made = files(DEFINITIONS)
    for path in directory.glob("*.yaml"):
        if path.name not in made:
            path.unlink()
    for name, content in made.items():
        (directory / name).write_text(content)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
