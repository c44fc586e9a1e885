"""A gardenlet whose flow waits for something, for tests of what shows flows.

with waiting_seed(garden) as world:
    world.waits()
"""

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.garden import Garden
from kit.gardenlet_seeds import SeedPlace
from kit.processes.agent import AgentProcess

DEFINITIONS = "Deploying extensions-related custom resource definitions"
MANAGER = "Deploying and waiting for gardener-resource-manager to be healthy"


class FlowWorld:
    """A gardenlet whose Seed waits for a resource manager, for some minutes."""

    def __init__(self, place: SeedPlace, process: AgentProcess) -> None:
        self.place, self.process = place, process
        self.url = f"http://localhost:{process.metrics_port}"
        self.path = f"/flows/seed/{place.name}"

    def flow(self, which: str) -> Any:
        """None: there is none yet."""
        try:
            with urllib.request.urlopen(f"{self.url}{self.path}?format=json", timeout=30) as answer:
                return orjson.loads(answer.read()).get(which)
        except urllib.error.HTTPError:
            return None

    def tasks(self, which: str) -> dict[str, Any]:
        return {each["id"]: each for each in (self.flow(which) or {}).get("tasks", ())}

    def waits(self) -> Any:
        def reason() -> Any:
            return self.tasks("running").get("resource-manager", {}).get("reason")

        return eventually(reason, "the resource manager to be waited for", state=lambda: self.flow("running"))


@contextmanager
def waiting_seed(garden: Garden) -> Iterator[FlowWorld]:
    with Cluster() as cluster:
        place = SeedPlace(garden, cluster)
        with place.process() as process:
            world = FlowWorld(place, process)
            eventually(lambda: place.operation, "the Seed to be reconciled", state=lambda: place.seed)
            world.waits()
            yield world
        place.remove()
