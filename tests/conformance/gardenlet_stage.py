"""A garden and a seed in which scenarios of a gardenlet are played, and the gardenlets."""

import asyncio
import base64
import json
import random
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

from conformance.gardenlet_normal import GardenletNormal
from conformance.gardenlet_player import Play
from conformance.gardenlet_process import OwnGardenlet
from conformance.gardenlet_scenarios import SHARED_SEED, GardenletScenario, configuration, prelude
from conformance.gardenlet_sites import Sites, sites
from conformance.scenario_data import Observations
from devcluster.cluster import Cluster
from gardener.api.garden import SEEDS
from gardener.api.seed_definitions import Stage, custom_resource_definitions
from kit.eventually import soon
from kit.garden import installed
from kit.managed_resources import install_crd
from kit.processes.forked_agents import forked_agents
from kube.errors import ApiError, Conflict, NotFound
from kube.objects import Object, mapping
from kube.paths import at
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from localprocesses.components import Shape

_AT_ONCE = 32
_PLAYED = (
    "node-lifecycle-controller",
    "node-ipam-controller",
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "disruption-controller",
)
"""Scenarios say what becomes of workloads and Nodes."""
_SHAPES = {
    "garden": Shape(scheduled=False),
    "seed": Shape(services="10.0.0.0/16", played=_PLAYED, scheduled=False),
}


def played(scenarios: Sequence[GardenletScenario]) -> dict[str, Observations]:
    """What was seen, by the scenario."""
    if not scenarios:
        return {}
    with ExitStack() as stack:
        clusters = {name: stack.enter_context(Cluster(shape=shape)) for name, shape in _SHAPES.items()}
        installed(clusters["garden"])
        install_crd(clusters["seed"])
        for definition in (each for stage in Stage for each in custom_resource_definitions(stage)):
            clusters["seed"].api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), definition)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gardenlets-")))
        return asyncio.run(_play_all(scenarios, clusters, directory))


async def _play_all(
    scenarios: Sequence[GardenletScenario], clusters: dict[str, Cluster], directory: Path
) -> dict[str, Observations]:
    config = directory / "gardenlet.json"
    config.write_text(json.dumps(configuration()))
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(sites(clusters))
        fork = await stack.enter_async_context(forked_agents(config))
        await _furnish(found)
        shared = OwnGardenlet(SHARED_SEED, found, fork, directory)
        run = random.randrange(1 << 16)

        def play(number: int, scenario: GardenletScenario) -> Play:
            name = f"c{run:04x}{number:03}"
            gardenlet = OwnGardenlet(name, found, fork, directory) if scenario.own else shared
            return Play(scenario, name, found, gardenlet, GardenletNormal(name, ca=found["garden"].ca))

        plays = [play(number, scenario) for number, scenario in enumerate(scenarios)]
        # Gardenlets of one seed would request each other's tokens.
        for own in (False, True):
            chosen = [each for each in plays if each.scenario.own is own]
            if chosen and not own:
                await shared.start_with(configuration())
                await _until_registered(found)
            await _at_once([each for each in chosen if not each.scenario.alone])
            for play_alone in (each for each in chosen if each.scenario.alone):
                await play_alone.run()
            await shared.close()
        return {each.scenario.id: each.seen for each in plays}


async def _at_once(plays: Sequence[Play]) -> None:
    """Long ones first, so that at the end nothing waits for one of them."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def run(play: Play) -> None:
        async with limit:
            await play.run()

    by_length = sorted(plays, key=lambda each: -each.scenario.seconds)
    await asyncio.gather(*map(run, by_length))


async def _furnish(found: Sites) -> None:
    decoded: dict[str, list[Any]] = json.loads(json.dumps(prelude()), object_hook=_decoded)
    for cluster, objects in decoded.items():
        for obj in objects:

            async def is_put(cluster: str = cluster, obj: Object = obj) -> bool:
                await found[cluster].put(obj)
                return True

            await soon(is_put, f"{obj['kind']} {obj['metadata']['name']}", passing=(NotFound, Conflict, ApiError))


def _decoded(value: Object) -> Any:
    return base64.b64encode(value["x-b64"].encode()).decode() if value.keys() == {"x-b64"} else value


async def _until_registered(found: Sites) -> None:
    async def is_ready() -> bool:
        seed = await found["garden"].client.find(SEEDS, SHARED_SEED)
        conditions = at(seed or {}, "status", "conditions") or []
        return any(mapping(each).get("type") == "GardenletReady" for each in conditions)

    await soon(is_ready, "the shared Seed")
