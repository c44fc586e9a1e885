"""The tasks of a preview: which run, which can't, and which are left out then."""

from collections.abc import Collection

from agent.gardenlet.flow.graph import Graph, Task
from agent.gardenlet.shoot.dry_run.run import run_once
from components.results import Results
from gardener.difference_reports import UnknownTask
from kube.runtime.controller import ReconcileError


class World:
    def __init__(self, **errors: Exception) -> None:
        self.errors, self.ran = errors, list[str]()


def task(name: str, after: Collection[str] = (), *, is_left_out: bool = False) -> Task[World]:
    async def run(world: World) -> None:
        world.ran.append(name)
        if name in world.errors:
            raise world.errors[name]

    return Task(name, f"Task {name}", run, after=after, unless=lambda _: is_left_out)


GRAPH = Graph(
    "Test",
    [
        task("a"),
        task("b", "a"),
        task("out", "b", is_left_out=True),
        task("c", ["out"]),
        task("d", "a"),
        task("e", "cd"),
    ],
)


async def test_each_task_runs_once() -> None:
    world = World()
    assert await run_once(GRAPH, world, Results()) == []
    assert sorted(world.ran) == ["a", "b", "c", "d", "e"]


async def test_what_comes_after_a_task_that_can_not_run_is_left_out() -> None:
    world = World(b=ReconcileError("Secret s/t does not exist yet"))
    assert await run_once(GRAPH, world, Results()) == [UnknownTask("Task b", "Secret s/t does not exist yet")]
    assert sorted(world.ran) == ["a", "b", "d"]


async def test_a_task_that_relies_on_what_it_waited_for_is_no_crash() -> None:
    world = World(d=IndexError("list index out of range"))
    assert await run_once(GRAPH, world, Results()) == [
        UnknownTask("Task d", "an object that it reads does not exist yet")
    ]
    assert sorted(world.ran) == ["a", "b", "c", "d"]
