"""What stores keep of objects survives any JSON: an odd object must not stop the watch of all others.

Each view is fed a plausible object, in which every value that it looks at is in turn replaced by every odd one. That the
object has whatever field a view reads is checked as well.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from kit.hostile import Place
from kit.views import MADE_AT_WORK, SAMPLE, constants, modules, read_by, views
from kube.objects import Object
from kube.runtime.cache import View

ROOT = Path(__file__).parents[2]
VIEWS = [pytest.param(view, id=name) for name, view in views()]

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 10**19, 1.5, "", "boom", "a/b/c", ":", "~", "²", "9" * 30, "\x00"),
    *([], [None], ["boom"], [[]], [{}], [7, {"boom": 1}]),
    *({}, {"": None}, {"boom": "boom"}, {"boom": ["boom"]}, {"boom": {"boom": {}}}),
)


def replaced(value: Any, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    """The value with each value in it replaced by each odd one, itself included; and where that one is."""
    yield from ((path, odd) for odd in ODD)
    if isinstance(value, dict):
        for name, inner in value.items():
            for where, odd in replaced(inner, (*path, name)):
                yield where, {**value, name: odd}
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            for where, odd in replaced(inner, (*path, index)):
                yield where, [*value[:index], odd, *value[index + 1 :]]


OBJECTS = [(path, orjson.dumps(obj)) for path, obj in replaced(SAMPLE) if isinstance(obj, dict)]


@pytest.mark.parametrize("view", VIEWS)
def test_a_projection_and_its_indexes_survive_any_json(view: View[Any]) -> None:
    read = read_by(view)
    for body in [orjson.dumps(SAMPLE), *(body for path, body in OBJECTS if path in read)]:
        kept = view.project(orjson.loads(body))
        for _, indexer in view.indexes:
            hash(frozenset(indexer(kept)))


def made_at_work() -> set[str]:
    found = set()
    for name in modules():
        path = ROOT / (name.replace(".", "/") + ".py")
        if not path.exists():
            continue
        tree = ast.parse(path.read_text())
        top = {
            id(call) for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) for call in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "View" and id(node) not in top:
                found.add(f"{name}: {ast.unparse(node.args[1])}")
    return found


def test_all_views_are_known_here() -> None:
    assert made_at_work() == set(MADE_AT_WORK)
    assert len(dict(constants())) > 20


class Traced(dict[str, Any]):
    """Notes the fields that are requested and are not there."""

    def __init__(self, content: Object, path: str, missing: set[str]) -> None:
        super().__init__({name: _traced(value, f"{path}.{name}", missing) for name, value in content.items()})
        self._path, self._missing = path, missing

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self._missing.add(f"{self._path}.{name}")
        return super().get(name, default)


def _traced(value: Any, path: str, missing: set[str]) -> Any:
    if isinstance(value, dict):
        return Traced(value, path, missing)
    return [_traced(each, path, missing) for each in value] if isinstance(value, list) else value


def test_the_sample_has_every_field_that_a_view_reads() -> None:
    missing: set[str] = set()
    for _, view in views():
        view.project(Traced(SAMPLE, "", missing))
    assert missing == set()
