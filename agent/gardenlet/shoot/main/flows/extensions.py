"""Tasks of Extensions: each is deployed and deleted in the stage that its registration requests."""

from collections.abc import Collection, Iterator
from functools import partial

from agent.gardenlet.common.extension_objects.kinds import EXTENSION
from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.shoot.main.flows.when import Leaves, any_of, awake, no_waiting
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import Going
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.tasks import extensions, requests
from components.results import Result


def deploys(
    its_id: str, when: str, stage: Stage, after: Collection[str], unless: Leaves
) -> Iterator[Task[ShootOperation]]:
    """Tasks that write the Extensions of a stage, and wait for responses. Args: when: the stage, in their names."""
    names = f"Deploying extension resources {when}", f"handled {when}"
    yield from _tasks((its_id, f"{its_id}-ready"), names, stage, after, unless)


def hibernates(when: str, stage: Stage, after: Collection[str], *, suffix: str = "") -> Iterator[Task[ShootOperation]]:
    """Tasks as those of `deploys`, while the Shoot hibernates. Args: suffix: of their IDs."""
    ids = f"extensions-hibernate{suffix}", f"extensions-hibernated{suffix}"
    names = f"Hibernating extension resources {when}", f"hibernated {when}"
    yield from _tasks(ids, names, stage, after, awake)


def _tasks(
    ids: tuple[str, str], names: tuple[str, str], stage: Stage, after: Collection[str], unless: Leaves
) -> Iterator[Task[ShootOperation]]:
    yield Task(ids[0], names[0], partial(extensions.deploy, stage=stage), after=after, unless=unless)
    name, run = f"Waiting until extension resources {names[1]} are ready", partial(extensions.wait, stage=stage)
    yield Task(ids[1], name, run, after=ids[:1], unless=any_of(unless, no_waiting), retry=ONCE)


def deletes(
    its_id: str, when: str, stages: Collection[Stage], after: Collection[str], result: Result[Going]
) -> Iterator[Task[ShootOperation]]:
    """Tasks that delete the Extensions of stages, and wait until they are gone."""
    run = partial(extensions.delete, stages=stages)
    name = f"Deleting extension resources {when}"
    yield Task(its_id, name, run, after=after, retry=ONCE, provides=result)
    name = f"Waiting until extension resources that should be handled {when} have been deleted"
    yield waits_until_gone(f"{its_id}-gone", name, its_id, result)


def waits_until_gone(
    its_id: str, name: str, after: str, result: Result[Going], unless: Leaves | None = None
) -> Task[ShootOperation]:
    """Task that waits until Extensions that an earlier task has deleted are gone."""
    run = partial(requests.wait_for, kind=EXTENSION, result=result)
    return Task(its_id, name, run, after=[after], unless=unless, retry=ONCE, reads=[result])
