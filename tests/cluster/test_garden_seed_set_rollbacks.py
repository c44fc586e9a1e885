"""`kubectl mss` on a real API server: revisions are listed and shown, and a set goes back to one of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import yaml
from click.testing import CliRunner, Result

from agent.controller_manager.managed_seed_set.controller import declare
from gardener.api.garden import MANAGED_SEED_SETS
from gardener.garden.managed_seed_sets import CHANGE_CAUSE, templates_of
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_seed_sets import SeedSetPlace
from kit.world import connected
from kube.objects import Object, annotations
from kubectl.seed_sets.__main__ import app

pytestmark = pytest.mark.timeout(900)


class Place(SeedSetPlace):
    async def run(self, command: str, *arguments: str) -> Result:
        return await asyncio.to_thread(self._run, [command, self.name, "-n", "garden", *arguments])

    def _run(self, command: list[str]) -> Result:
        environment = {"KUBECONFIG": str(self.base.garden.cluster.kubeconfig), "NO_COLOR": "1"}
        return CliRunner().invoke(app, command, prog_name="kubectl mss", env=environment)

    async def listed(self) -> list[list[str]]:
        """Number, whether it is the current one, and the cause."""
        lines = (await self.run("history")).stdout.splitlines()[1:]
        found = [line.replace(" (current)", "*").split(maxsplit=3) for line in lines]
        return [[number, *cause] for number, _, _, *cause in found]

    async def shows(self, *wanted: list[str]) -> None:
        async def is_so() -> bool:
            found = await self.listed()
            assert found == [*wanted]
            return True

        await soon(is_so, "the revisions to be so")

    def seed_set(self) -> Object:
        return self.base.get(MANAGED_SEED_SETS, self.name)

    def cause(self, cause: str, maximum: int) -> None:
        body = {
            "metadata": {"annotations": {CHANGE_CAUSE: cause}},
            "spec": {"shootTemplate": self.with_workers(maximum)},
        }
        self.base.patch(MANAGED_SEED_SETS, self.name, body)


@asynccontextmanager
async def a_place(garden: Garden) -> AsyncIterator[Place]:
    async with connected(garden.cluster) as client:
        place = Place(garden, client)
        async with run_garden_controller(declare, client):
            yield place


async def test_a_set_goes_back_to_the_revision_before_or_to_any(garden: Garden) -> None:
    async with a_place(garden) as place:
        place.make(0, updateStrategy={"rollingUpdate": {}})
        await place.shows(["1*"])
        assert "no revision before the newest, 1" in (await place.run("undo")).stderr
        first = templates_of(place.seed_set())
        place.cause("more workers", 3)
        await place.shows(["1"], ["2*", "more workers"])
        place.cause("still more", 4)
        await place.shows(["1"], ["2", "more workers"], ["3*", "still more"])
        shown = await place.run("history", "--revision", "1")
        assert yaml.safe_load(shown.stdout) == {"spec": first}

        assert (await place.run("undo")).exit_code == 0
        await place.shows(["1"], ["3", "still more"], ["4*", "more workers"])
        assert annotations(place.seed_set())[CHANGE_CAUSE] == "more workers"
        again = await place.run("undo", "--to-revision", "4")
        assert (again.exit_code, "already" in again.stderr) == (0, True)
        assert (await place.run("undo", "--to-revision", "1")).exit_code == 0
        await place.shows(["3", "still more"], ["4", "more workers"], ["5*"])
        assert templates_of(place.seed_set()) == first
        assert CHANGE_CAUSE not in annotations(place.seed_set())
        missing = await place.run("undo", "--to-revision", "9")
        assert (missing.exit_code, "there are: 3, 4, 5" in missing.stderr) == (1, True)


async def test_status_shows_what_is_waited_for_and_ends_when_it_has_come(garden: Garden) -> None:
    async with a_place(garden) as place:
        place.make(1)
        await soon(lambda: place.waits() == "0 ShootReconciling", "the Shoot to be made")
        assert "no revision" in (await place.run("history")).stderr
        now = await place.run("status")
        assert now.exit_code == 1
        assert f"garden/{place.name}: 1 of 1 replicas are there, 0 are ready; replica " in now.stdout
        late = await place.run("status", "--watch", "--timeout", "0s")
        assert (late.exit_code, "not ready after 0s" in late.stderr) == (1, True)
        watching = asyncio.create_task(place.run("status", "--watch"))
        await place.ready(1)
        end = await watching
        assert end.exit_code == 0
        assert end.stdout.splitlines()[-1] == f"garden/{place.name}: 1 of 1 replicas are there, 1 are ready"
