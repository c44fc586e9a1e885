"""Controllers of the controller manager at work in a test's own process.

async with run_garden_controller(declare, client, controllers=Controllers(bastion=Bastion(max_lifetime=60.0))):
    ...
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import TypeAlias

from agent.controller_manager.context import Context
from config.controller_manager.controllers import Controllers
from config.controller_manager.schema import ControllerManagerConfiguration
from devcluster.cluster import Cluster
from devcluster.garden.objects import CONTROLLER_MANAGER_ACCOUNT, NAMESPACE
from gardenapi.api import recognized
from kit.controllers import cluster_of, loops_at_work
from kit.eventually import soon
from kit.processes.agent import AgentProcess
from kit.world import PatientClient
from kube.clock import utc_now
from kube.errors import KubeError
from kube.objects import Object, key, resource_version
from kube.resources import Resource
from kube.runtime.client import Client
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop
from kube.runtime.watch import Timings

Declare: TypeAlias = Callable[[Context], ControlLoop]
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{CONTROLLER_MANAGER_ACCOUNT}"


@asynccontextmanager
async def run_garden_controllers(
    declared: Sequence[Declare],
    client: Client,
    *namespaces: str,
    controllers: Controllers | None = None,
    clock: Callable[[], datetime] = utc_now,
    timings: Timings | None = None,
    behind: Sequence[Resource] = (),
) -> AsyncIterator[list[ControlLoop]]:
    """They see these namespaces, or all, and may what the manifests state that they may; see `cluster_of`.

    A client of the test's own kind is used as it is.
    """
    if type(client) in {Client, PatientClient}:
        client = client.impersonating(ACCOUNT)
    garden = cluster_of(client, *namespaces, timings=timings, behind=behind)
    context = Context(
        config=ControllerManagerConfiguration(controllers=controllers or Controllers()),
        garden=garden,
        # A process that does not know ends, and is started again.
        api=await soon(partial(recognized, client), "a garden", passing=(KubeError,)),
        recorder=EventRecorder(client, component="test"),
        clock=clock,
        deletion_clock=clock,
    )
    loops = [declare(context) for declare in declared]
    async with loops_at_work(context.recorder, {garden.caches}, *loops):
        yield loops


@asynccontextmanager
async def run_garden_controller(
    declare: Declare,
    client: Client,
    *namespaces: str,
    controllers: Controllers | None = None,
    clock: Callable[[], datetime] = utc_now,
    behind: Sequence[Resource] = (),
) -> AsyncIterator[ControlLoop]:
    """The same for one."""
    running = run_garden_controllers(
        [declare], client, *namespaces, controllers=controllers, clock=clock, behind=behind
    )
    async with running as (loop,):
        yield loop


def replica(cluster: Cluster, user: str) -> AgentProcess:
    """A controller manager as a process, which hands its lease over quickly."""
    config = {
        "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
        "kind": "ControllerManagerConfiguration",
        "leaderElection": {"leaseDuration": "60s", "renewDeadline": "40s", "retryPeriod": "200ms"},
    }
    return AgentProcess(config, kubeconfig=cluster.kubeconfig_for(user, ("system:masters",)))


async def looked_at(loop: ControlLoop, resource: Resource, obj: Object) -> None:
    """Returns when the loop knows of an object as it is, and has looked at it; its watches lag behind."""
    (store,) = (watch.store for watch in loop._watches if watch.store.view.resource == resource)
    await soon(lambda: store.version(key(obj)) >= resource_version(obj), "the loop to know of the change")
    await until_idle(loop)


async def until_synced(loop: ControlLoop) -> None:
    """Returns when all that it watches has been listed."""
    await soon(lambda: all(watch.store.synced.is_set() for watch in loop._watches), "the first lists")


async def until_idle(loop: ControlLoop) -> None:
    """Returns when all that is in the queue of the loop has been looked at."""
    await soon(lambda: loop.queue.is_idle, "the passes to end")
