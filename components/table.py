"""The table of components of Shoots in the documentation.

`python -m components.table docs/gardenlet-shoots.md` writes it between the markers of the document.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from components.component import Component
from components.registry import COMPONENTS, IMAGES_OF_MACHINES
from components.sample import needs

BEGIN = "<!-- components: begin (written by `python -m components.table`) -->"
END = "<!-- components: end -->"


def inserted(document: str) -> str:
    """The document with the table between its markers."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([f"{before}{BEGIN}\n", *_rows(), f"\n{END}{after}"])


def _rows() -> Iterator[str]:
    yield "| What only Shoots with workers have | Objects | Images, of `images.workers` |"
    yield "|---|---|---|"
    for each in COMPONENTS:
        if each.is_of_workers:
            yield _row(each.title, _place(each), needs(each).images)
    yield _row("machines", "no objects", IMAGES_OF_MACHINES)


def _row(name: str, place: str, images: Iterable[str]) -> str:
    return f"| {name} | {place} | {', '.join(images)} |"


def _place(component: Component) -> str:
    kinds = {each["kind"] for each in needs(component).kinds}
    in_seed, in_shoot = kinds - {"ManagedResource", "Secret"}, "ManagedResource" in kinds
    return " and ".join([*(["seed"] if in_seed else []), *(["Shoot"] if in_shoot else [])])


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(inserted(path.read_text()))
