"""What controller manager, scheduler and gardenlet do, in a garden of its own.

kill -9 at any write (see `kit.crash.sweep`), and answers that no API server gave (see `kit.crash.answers`).
"""

import pytest

from agent.controller_manager import bootstrap
from gardenapi.api import recognized
from kit.crash import (
    scenes_of_a_garden,
    scenes_of_a_gardenlet,
    scenes_of_backups,
    scenes_of_installations,
    scenes_of_projects,
    scenes_of_seed_autoscalers,
    scenes_of_seed_sets,
    scenes_of_shoots,
    scenes_of_the_scheduler,
)
from kit.crash.answers import ANSWERS, Answers
from kit.crash.sweep import FULL, Scene, Sweep, deaths_in
from kit.garden import Garden
from kit.world import connected
from kube.clock import utc_now

SCENES: list[type[Scene]] = [
    *scenes_of_projects.SCENES,  # first, since the others share the Project `garden`
    *scenes_of_a_garden.SCENES,
    *scenes_of_shoots.SCENES,
    *scenes_of_seed_sets.SCENES,
    *scenes_of_seed_autoscalers.SCENES,
    *scenes_of_the_scheduler.SCENES,
    *scenes_of_a_gardenlet.SCENES,
    *scenes_of_backups.SCENES,
    *scenes_of_installations.SCENES,
]
DEATHS = deaths_in(SCENES)
_AT_ONCE = 4
"""Runs of a scene at the same time, in namespaces of their own."""


@pytest.fixture(autouse=True)
async def nothing_is_lacking(garden: Garden) -> None:
    """What a process makes at its start is no write of a scene."""
    async with connected(garden.cluster) as client:
        await bootstrap.prepare(client, await recognized(client), now=utc_now())


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_killed_at_any_write_in_a_garden(scene: type[Scene], garden: Garden) -> None:
    report = await Sweep(scene, garden.cluster, at_once=1 if scene.everywhere else _AT_ONCE).run(DEATHS[scene])
    print(f"CRASHES {scene.__name__}: {report}")


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_nothing_follows_from_an_answer_that_no_api_server_gave(scene: type[Scene], garden: Garden) -> None:
    """From the likeliest one, or from any."""
    answers = ANSWERS if FULL else ANSWERS[:1]
    await Answers(scene, garden.cluster, at_once=1 if scene.everywhere else _AT_ONCE).check(answers)
