"""The scheduler at work in a test's own process, and Seeds that it may choose.

async with run_scheduler(client, place.namespace):
    place.shoot("s")
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from agent.scheduler.context import Context
from agent.scheduler.shoot.controller import declare
from config.scheduler.schema import SchedulerConfiguration, Schedulers, Shoot
from devcluster.garden.objects import NAMESPACE, SCHEDULER_ACCOUNT
from gardenapi.api import recognized
from gardener.api.garden import SEEDS, SHOOTS
from gardener.conditions import BACKUP_BUCKETS_READY, GARDENLET_READY
from kit.controllers import cluster_of, loops_at_work
from kit.garden_shoots import ShootPlace
from kit.scheduling import ready_status
from kit.world import PatientClient
from kube.objects import Object, spec, text
from kube.paths import mapping_at
from kube.resources import Resource
from kube.runtime.client import Client
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{SCHEDULER_ACCOUNT}"


@asynccontextmanager
async def run_scheduler(
    client: Client, *namespaces: str, shoot: Shoot | None = None, behind: Sequence[Resource] = ()
) -> AsyncIterator[ControlLoop]:
    """It sees the Shoots of these namespaces, or all, and may what the manifests state that it may."""
    if type(client) in {Client, PatientClient}:
        client = client.impersonating(ACCOUNT)
    garden = cluster_of(client, *namespaces, behind=behind)
    context = Context(
        config=SchedulerConfiguration(schedulers=Schedulers(shoot=shoot or Shoot())),
        garden=garden,
        api=await recognized(client),
        recorder=EventRecorder(client, component="test"),
    )
    loop = declare(context)
    async with loops_at_work(context.recorder, {garden.caches}, loop):
        yield loop


def usable_seed(place: ShootPlace, suffix: str = "", *, room: int | None = None) -> str:
    """The name of a new Seed in the region of the Shoots of the place."""
    name = place.seed(suffix)
    set_room(place, name, room)
    return name


def set_room(place: ShootPlace, seed: str, room: int | None) -> None:
    status = ready_status(room=room)
    (gardenlet,) = status["conditions"]
    conditions = [{**gardenlet, "type": kind} for kind in (GARDENLET_READY, BACKUP_BUCKETS_READY)]
    place.patch(SEEDS, seed, {"status": {**status, "conditions": conditions}}, status=True)


def seed_of(place: ShootPlace, name: str = "s") -> str:
    """Empty: it has none."""
    return text(spec(place.get(SHOOTS, name)).get("seedName"))


def reported(place: ShootPlace, name: str = "s") -> Object:
    """What the status reports of the last operation; empty: nothing."""
    return mapping_at(place.get(SHOOTS, name), "status", "lastOperation")
