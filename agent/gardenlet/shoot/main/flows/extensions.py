"""Units of Extensions: each Extension is deployed and deleted in the stage that its registration requests."""

from collections.abc import Collection
from functools import partial

from agent.gardenlet.common.extension_objects.kinds import EXTENSION
from agent.gardenlet.flow.graph import ONCE, USUAL, Retry
from agent.gardenlet.flow.unit import Leaves, Unit, Wait
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import STALE_EXTENSIONS, Going
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.skipping import asleep_or_no_waiting, awake, no_waiting
from agent.gardenlet.shoot.main.tasks import extensions, requests
from components.results import Result


def deploys(
    its_id: str, when: str, stage: Stage, after: Collection[str], skips: Leaves[ShootOperation]
) -> Unit[ShootOperation]:
    """Unit of the Extensions of a stage. Args: when: the stage, in the names of its tasks."""
    return Unit(
        id=its_id,
        title=f"extension resources {when}",
        deploy=partial(extensions.deploy, stage=stage),
        after=after,
        skips=skips,
        wait=_ready(stage, f"handled {when}"),
    )


def hibernates(when: str, stage: Stage, after: Collection[str], *, suffix: str = "") -> Unit[ShootOperation]:
    """Unit as that of `deploys`, while the Shoot hibernates. Args: suffix: of the IDs of its tasks."""
    return Unit(
        id=f"extensions-hibernate{suffix}",
        verb="Hibernating",
        title=f"extension resources {when}",
        deploy=partial(extensions.deploy, stage=stage),
        after=after,
        skips=awake,
        wait=_ready(stage, f"hibernated {when}", f"extensions-hibernated{suffix}"),
    )


def _ready(stage: Stage, what: str, its_id: str = "") -> Wait[ShootOperation]:
    run = partial(extensions.wait, stage=stage)
    return Wait(f"extension resources {what} are ready", run, id=its_id, unless=no_waiting)


def deletes(
    its_id: str, when: str, stages: Collection[Stage], after: Collection[str], result: Result[Going]
) -> Unit[ShootOperation]:
    """Unit that deletes the Extensions of stages, and waits until they are gone."""
    return Unit(
        id=its_id,
        verb="Deleting",
        title=f"extension resources {when}",
        deploy=partial(extensions.delete, stages=stages),
        after=after,
        retry=ONCE,
        provides=result,
        wait=_gone(its_id, f"extension resources that should be handled {when} have been deleted", result),
    )


def _gone(
    its_id: str, awaited: str, result: Result[Going], unless: Leaves[ShootOperation] | None = None
) -> Wait[ShootOperation]:
    run = partial(requests.wait_for, kind=EXTENSION, result=result)
    return Wait(awaited, run, id=f"{its_id}-gone", unless=unless, reads=[result])


def _deletes_stale(
    awaited: str, after: Collection[str], retry: Retry, unless: Leaves[ShootOperation] | None = None
) -> Unit[ShootOperation]:
    """Unit that deletes Extensions that the Shoot does not request. Args: unless: when not to wait."""
    return Unit(
        id="stale-extensions",
        verb="Deleting",
        title="stale extension resources",
        deploy=extensions.delete_stale,
        after=after,
        retry=retry,
        provides=STALE_EXTENSIONS,
        wait=_gone("stale-extensions", awaited, STALE_EXTENSIONS, unless),
    )


STALE = _deletes_stale("stale extension resources are deleted", ["connection"], USUAL, unless=asleep_or_no_waiting)
STALE_BEFORE_DELETION = _deletes_stale(
    "all stale extension resources have been deleted", ["managed-resources-gone"], ONCE
)
