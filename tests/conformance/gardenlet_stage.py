"""A garden and a seed in which scenarios of a gardenlet are replayed, and the gardenlets."""

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
from conformance.gardenlet_player import MANAGED_RESOURCE, Play
from conformance.gardenlet_process import OwnGardenlet
from conformance.gardenlet_scenarios import (
    OTHER_SEED,
    OTHER_SETTINGS,
    SHARED_SEED,
    GardenletScenario,
    configuration,
    prelude,
)
from conformance.gardenlet_sites import Sites, sites
from conformance.object_normal import project_name
from conformance.scenario_data import Observations, Ref
from devcluster.cluster import Cluster
from gardener.api.garden import SEEDS
from gardener.api.seed_definitions import Stage, custom_resource_definitions
from gardener.keys import USABLE_BY_SEED_PREFIX
from kit.eventually import soon
from kit.garden import installed
from kit.managed_resources import install_crd
from kit.processes.forked_agents import forked_agents
from kube.errors import ApiError, Conflict, NotFound, Unreachable
from kube.objects import Key, Object, mapping
from kube.paths import at
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, SECRETS
from localprocesses.components import Shape

_AT_ONCE = 24
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
"""Scenarios state what becomes of workloads and Nodes."""
_LOOKING_INTO_SHOOTS, _MAKING_SEEDS = "shoot-care", "managedseed"
"""The areas whose scenarios need the cluster that plays Shoots. The second ones are in a namespace of it, one by one."""
_REGISTERING = "bootstrap"
"""The area whose gardenlets register as themselves: recorded ones registered in a garden that allows everything."""
_SERVICES = "10.0.0.0/16"
_SHAPES = {
    "garden": Shape(services=_SERVICES, scheduled=False),
    "seed": Shape(services=_SERVICES, played=_PLAYED, scheduled=False),
    "shoot": Shape(played=_PLAYED, scheduled=False),
}
_OF_GARDEN = ("seed-care",)
"""Areas in which a gardenlet looks at all that its seed has in the namespace `garden`: their seed is the garden."""
_OF_ALL = ("networkPolicy", "tokenRequestor", "tokenRequestorWorkloadIdentity", "vpaEvictionRequirements")
_LEAVING_OTHERS_ALONE = {"controllers": {name: {"enabled": False} for name in _OF_ALL}}
"""Gardenlets of one seed would do these twice, such as requesting each other's tokens."""


def played(scenarios: Sequence[GardenletScenario]) -> dict[str, Observations]:
    """What was seen, by the scenario."""
    if not scenarios:
        return {}
    with ExitStack() as stack:
        needed = {name: shape for name, shape in _SHAPES.items() if name != "shoot" or _look_into_shoots(scenarios)}
        clusters = {name: stack.enter_context(Cluster(shape=shape)) for name, shape in needed.items()}
        installed(clusters["garden"])
        for cluster in clusters.values():
            install_crd(cluster)
        for definition in (each for stage in Stage for each in custom_resource_definitions(stage)):
            clusters["seed"].api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), definition)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gardenlets-")))
        return asyncio.run(_play_all(scenarios, clusters, directory))


def _look_into_shoots(scenarios: Sequence[GardenletScenario]) -> bool:
    return any(each.area in {_LOOKING_INTO_SHOOTS, _MAKING_SEEDS} for each in scenarios)


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
        other = OwnGardenlet(OTHER_SEED, found, fork, directory, _LEAVING_OTHERS_ALONE)
        run = random.randrange(1 << 16)

        def play(number: int, scenario: GardenletScenario) -> Play:
            name = project_name(run, number)
            seen = {**found, "seed": found["garden"]} if scenario.area in _OF_GARDEN else found
            settings = _LEAVING_OTHERS_ALONE if scenario.alone else {}
            gardenlet = other if scenario.config else shared
            if scenario.own:
                gardenlet = OwnGardenlet(name, seen, fork, directory, settings)
            normal = GardenletNormal(name, ca=found["garden"].ca, hidden=scenario.hide)
            return Play(scenario, name, seen, gardenlet, normal)

        plays = [play(number, scenario) for number, scenario in enumerate(scenarios)]
        await _confirm_references(found, [each.name for each in plays if each.scenario.area == _REGISTERING])
        # It would not start with what is put into its seed for others.
        await shared.start_with(configuration())
        if any(each.scenario.config for each in plays):
            await other.start(OTHER_SETTINGS)
            await _until_registered(found, OTHER_SEED)
        await _until_registered(found, SHARED_SEED)
        await asyncio.gather(
            _of_shared([shared, other], [each for each in plays if not each.scenario.own]),
            *(
                _one_by_one([each for each in plays if each.is_apart and each.sites["seed"] is seed])
                for seed in found.values()
            ),
        )
        await _at_once([each for each in plays if each.scenario.own and not each.scenario.alone])
        return {each.scenario.id: each.seen for each in plays}


async def _of_shared(gardenlets: Sequence[OwnGardenlet], plays: Sequence[Play]) -> None:
    seeds = [each for each in plays if each.scenario.area == _MAKING_SEEDS]
    plays = [each for each in plays if each not in seeds]
    await asyncio.gather(_at_once([each for each in plays if not each.scenario.alone]), _one_by_one(seeds))
    for each in plays:
        if each.scenario.area == _LOOKING_INTO_SHOOTS and not each.scenario.alone:
            # Some gardenlets correct what they find in their Shoots.
            await each.clean_up()
    by_place = [[each for each in plays if each.scenario.alone == place] for place in ("shoot", True)]
    await asyncio.gather(*map(_one_by_one, by_place))
    for gardenlet in gardenlets:
        await gardenlet.close()
    seed = gardenlets[0].sites["seed"]
    for left in await seed.listed(*MANAGED_RESOURCE, "garden"):
        # All gardenlets of a seed report how these are.
        await seed.delete(Ref.of(left))


async def _one_by_one(plays: Sequence[Play]) -> None:
    for each in plays:
        await each.run()
        await each.clean_up()


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
        for obj in (*objects, *map(_of_other_seed, filter(_is_of_seed, objects))):

            async def is_put(cluster: str = cluster, obj: Object = obj) -> bool:
                await found[cluster].put(obj)
                return True

            await soon(
                is_put, f"{obj['kind']} {obj['metadata']['name']}", passing=(NotFound, Conflict, ApiError, Unreachable)
            )


async def _confirm_references(found: Sites, seeds: Sequence[str]) -> None:
    """Seeds of the recorded configuration refer to this Secret."""
    labels = {f"{USABLE_BY_SEED_PREFIX}{name}": "true" for name in seeds}
    await found["garden"].client.patch(SECRETS, Key("garden", "dns"), {"metadata": {"labels": labels}})


def _is_of_seed(obj: Object) -> bool:
    """Whether it is the namespace of the shared Seed, or in it."""
    return f"seed-{SHARED_SEED}" in {obj["metadata"]["name"], obj["metadata"].get("namespace")}


def _of_other_seed(obj: Object) -> Object:
    copied: Object = json.loads(json.dumps(obj).replace(f"seed-{SHARED_SEED}", f"seed-{OTHER_SEED}"))
    return copied


def _decoded(value: Object) -> Any:
    return base64.b64encode(value["x-b64"].encode()).decode() if value.keys() == {"x-b64"} else value


async def _until_registered(found: Sites, name: str) -> None:
    async def is_ready() -> bool:
        seed = await found["garden"].client.find(SEEDS, name)
        conditions = at(seed or {}, "status", "conditions") or []
        return any(mapping(each).get("type") == "GardenletReady" for each in conditions)

    await soon(is_ready, f"Seed {name}")
