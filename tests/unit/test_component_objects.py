"""Objects of all components are those of the files in `tests/golden/components`.

`UPDATE_GOLDEN=1` writes the files, whose difference is for review.
"""

import os
from pathlib import Path

import pytest

from kit.component_objects import COMPONENTS, files

GOLDEN = Path(__file__).parents[1] / "golden" / "components"


@pytest.mark.parametrize("component", COMPONENTS)
def test_objects_of_a_component_are_as_recorded(component: str) -> None:
    """A file that no variant writes is an error, too: `kube-proxy-*.yaml` are those of `kube-proxy`, for instance."""
    found = files(component)
    if os.environ.get("UPDATE_GOLDEN"):
        for path in (GOLDEN / each for each in recorded(component)):
            path.unlink()
        for name, text in found.items():
            (GOLDEN / name).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / name).write_text(text)
    assert recorded(component) == found


def recorded(component: str) -> dict[str, str]:
    names = [component, *(f"{component}-{variant}" for variant in COMPONENTS[component])]
    paths = (GOLDEN / f"{name}.yaml" for name in names)
    return {str(path.relative_to(GOLDEN)): path.read_text() for path in paths if path.exists()}


def test_each_file_is_of_a_component() -> None:
    known = {name for component in COMPONENTS for name in recorded(component)}
    assert {str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob("*.*")} == known
