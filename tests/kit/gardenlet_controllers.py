"""Controllers of the gardenlet at work in a test's own process.

async with run_gardenlet_controller(declare, garden=garden, seed=seed, seed_name=name) as loop:
    ...

Garden and seed may be the same cluster.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from agent.gardenlet.common.health import HealthState
from agent.gardenlet.common.managed_resource_writes import ManagedResourceWrites
from agent.gardenlet.common.shoot_clusters import ShootClusters
from agent.gardenlet.context import Context
from components.registry import images_of_workers
from config.gardenlet.controllers import Controllers
from config.gardenlet.schema import (
    COMPONENTS,
    SHOOT_COMPONENTS,
    GardenletConfiguration,
    Images,
    Monitoring,
    Omitted,
    ShootMonitoring,
)
from gardenapi.api import recognized
from gardener.keys import SEED_USER_PREFIX, SEEDS_GROUP
from kit.controllers import cluster_of, loops_at_work
from kit.eventually import soon
from kube.clock import utc_now
from kube.errors import KubeError
from kube.objects import Object
from kube.runtime.client import Client
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop
from kube.runtime.watch import Timings
from process.clusters import Clusters
from process.configuration.fields import camel_case

_DRAIN_SECONDS = 30.0
Declare: TypeAlias = Callable[[Context], ControlLoop]
NETWORKS: Object = {"nodes": "10.10.0.0/16", "pods": "10.20.0.0/16", "services": "10.0.0.0/16"}
GARDENER: Object = {"id": "test", "name": "test", "version": "v0.0.0"}
SPEC: Object = {"provider": {"type": "local", "region": "local"}, "networks": NETWORKS}

BLOCKS = [camel_case(name) for name in Controllers.__dataclass_fields__ if name != "cache_sync_timeout"]
"""Of `controllers` in a configuration file."""


def only(block: str) -> Object:
    """In a configuration file, this controller and no others."""
    return {name: {"enabled": name == block} for name in BLOCKS}


def gardenlet_config(
    seed_name: str, *, spec: Object | None = None, controllers: Controllers | None = None, **fields: Any
) -> GardenletConfiguration:
    """Args: spec: of the Seed. fields: further ones of the configuration."""
    seed = {"metadata": {"name": seed_name}, "spec": spec or SPEC}
    return GardenletConfiguration(seed_config=seed, controllers=controllers or Controllers(), **fields)


def all_but(*deployed: str) -> Omitted:
    """Of the components of a seed, all others are left out, and of Shoots all that may be."""
    return Omitted(
        seed=tuple(each for each in COMPONENTS if each not in deployed), shoots=SHOOT_COMPONENTS, pod_webhooks=True
    )


def local_fields() -> dict[str, Any]:
    """Fields of a configuration for Shoots of the local provider."""
    images = {each: f"{each}:local" for each in images_of_workers(SHOOT_COMPONENTS)}
    return {
        "omit": all_but(),
        "images": Images(kubernetes="registry.k8s.io", resource_manager="resource-manager:local", workers=images),
        "etcd_server_names": ("127.0.0.1",),
        "monitoring": Monitoring(shoot=ShootMonitoring(enabled=False)),
    }


async def gardenlet_context(
    *,
    garden: Client,
    seed: Client,
    config: GardenletConfiguration,
    clock: Callable[[], datetime] = utc_now,
    namespaces: Sequence[str] = (),
    timings: Timings | None = None,
    as_gardenlet: bool = False,
    clusters: Clusters | None = None,
) -> Context:
    """Args:
    namespaces: of the seed that are seen; none: all.
    as_gardenlet: they have its rights in the garden.
    clusters: of the process, if they are special.
    """
    if as_gardenlet:
        garden = garden.impersonating(f"{SEED_USER_PREFIX}{config.seed_name}", [SEEDS_GROUP])
    return Context(
        config=config,
        seed_name=config.seed_name,
        seed=cluster_of(seed, *namespaces, timings=timings),
        garden=cluster_of(garden, timings=timings),
        # A process that does not know ends, and is started again.
        api=await soon(partial(recognized, garden), "a garden", passing=(KubeError,)),
        seed_recorder=EventRecorder(seed, component="test"),
        garden_recorder=EventRecorder(garden, component="test"),
        gardener=GARDENER,
        garden_identity="test",
        shoot_clusters=ShootClusters(
            seed,
            Clusters(user_agent="test", component="gardenlet") if clusters is None else clusters,
            config.shoot_client_connection,
        ),
        health=HealthState(config.controllers.seed.patience),
        writes=ManagedResourceWrites(),
        clock=clock,
        deletion_clock=clock,
    )


@asynccontextmanager
async def gardenlet_at_work(context: Context, *declared: Declare) -> AsyncIterator[list[ControlLoop]]:
    """Their Events are written, too."""
    loops = [declare(context) for declare in declared]
    recording = asyncio.create_task(context.seed_recorder.run())
    try:
        async with loops_at_work(context.garden_recorder, {context.seed.caches, context.garden.caches}, *loops):
            yield loops
        await context.seed_recorder.drain(_DRAIN_SECONDS)
    finally:
        recording.cancel()


@asynccontextmanager
async def run_gardenlet_controller(
    declare: Declare,
    *,
    garden: Client,
    seed: Client,
    config: GardenletConfiguration,
    clock: Callable[[], datetime] = utc_now,
    namespaces: Sequence[str] = (),
) -> AsyncIterator[ControlLoop]:
    context = await gardenlet_context(garden=garden, seed=seed, config=config, clock=clock, namespaces=namespaces)
    async with gardenlet_at_work(context, declare) as (loop,):
        yield loop
