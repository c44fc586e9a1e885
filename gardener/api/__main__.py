"""Write CustomResourceDefinitions: `python -m gardener.api manifests/crds/garden` writes a file per kind there."""

import sys
from pathlib import Path

from gardener.api.definition import files
from gardener.api.garden.definitions import DEFINITIONS


def write(directory: Path) -> None:
    """Write all definitions, and delete those of kinds that no longer exist."""
    made = files(DEFINITIONS)
    for path in directory.glob("*.yaml"):
        if path.name not in made:
            path.unlink()
    for name, content in made.items():
        (directory / name).write_text(content)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
