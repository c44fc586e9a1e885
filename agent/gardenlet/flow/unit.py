"""A unit of a flow: what a task deploys, the next one waits for, and another flow deletes.

    UNIT = Unit(
        id="etcd",
        title="main and events etcd",
        deploy=deploy,
        wait=Wait("main and event etcd report readiness", wait),
        destroy=destroy,
        after=["secrets"],
    )

Its tasks are `Deploying main and events etcd`, `Waiting until main and event etcd report readiness`, and `Destroying
main and events etcd`.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Generic

from agent.gardenlet.flow.graph import ONCE, USUAL, O, Retry, Task
from components.results import Result

Run = Callable[[O], Awaitable[Any]]
Leaves = Callable[[O], bool]


def any_of(*leaves: Leaves[O] | None) -> Leaves[O] | None:
    """Combine conditions that skip a task. Args: leaves: None: no condition."""
    given = [each for each in leaves if each is not None]
    return (lambda operation: any(leave(operation) for leave in given)) if given else None


@dataclass(frozen=True)  # slots would prevent Python from storing generic type arguments on instances
class Wait(Generic[O]):
    """The task that waits for a unit.

    Attributes:
        awaited: state in its name: `Waiting until <awaited>`.
        id: empty: that of the unit, with `-ready`.
        after: IDs of further tasks before it.
        unless: when to skip it, in addition to `Unit.skips`.
        provides: result of `run`.
        reads: results of earlier tasks.
    """

    awaited: str
    run: Run[O]
    id: str = ""
    after: Collection[str] = ()
    unless: Leaves[O] | None = None
    retry: Retry = ONCE
    provides: Result[Any] | None = None
    reads: Collection[Result[Any]] = ()


@dataclass(frozen=True, kw_only=True)
class Unit(Generic[O]):
    """Attributes:
    id: of the task that deploys it.
    title: in the names of its tasks.
    verb: in the name of the task that deploys it.
    after: IDs of tasks before that one.
    skips: when to skip all of its tasks.
    unless: when to skip the deployment, in addition.
    provides: result of `deploy`.
    reads: results of earlier tasks, for `deploy`.
    wait: None if nothing waits for it.
    destroy: deletes it, and returns when it is gone; None if no flow does.
    destroyed: replaces the title in the name of the task that deletes it.
    destroy_reads: results of earlier tasks, for `destroy`.
    """

    id: str
    title: str
    verb: str = "Deploying"
    deploy: Run[O]
    after: Collection[str] = ()
    skips: Leaves[O] | None = None
    unless: Leaves[O] | None = None
    retry: Retry = USUAL
    provides: Result[Any] | None = None
    reads: Collection[Result[Any]] = ()
    wait: Wait[O] | None = None
    destroy: Run[O] | None = None
    destroyed: str = ""
    destroy_reads: Collection[Result[Any]] = ()

    def tasks(self) -> Iterator[Task[O]]:
        """Tasks that deploy it, and wait for it."""
        yield Task(
            self.id,
            f"{self.verb} {self.title}",
            self.deploy,
            after=self.after,
            unless=any_of(self.skips, self.unless),
            retry=self.retry,
            provides=self.provides,
            reads=self.reads,
        )
        if (wait := self.wait) is not None:
            yield Task(
                wait.id or f"{self.id}-ready",
                f"Waiting until {wait.awaited}",
                wait.run,
                after=[self.id, *wait.after],
                unless=any_of(self.skips, wait.unless),
                retry=wait.retry,
                provides=wait.provides,
                reads=wait.reads,
            )

    def gone(self, after: Collection[str], *, verb: str = "Destroying", unless: Leaves[O] | None = None) -> Task[O]:
        """Task that deletes it."""
        assert self.destroy is not None  # flows only delete units that can be deleted
        return Task(
            f"{self.id}-gone",
            f"{verb} {self.destroyed or self.title}",
            self.destroy,
            after=after,
            unless=any_of(self.skips, unless),
            retry=ONCE,
            reads=self.destroy_reads,
        )


def tasks_of(*entries: Unit[O] | Task[O]) -> Iterator[Task[O]]:
    """Tasks that deploy the entries of a flow, and wait for them."""
    for each in entries:
        if isinstance(each, Unit):
            yield from each.tasks()
        else:
            yield each
