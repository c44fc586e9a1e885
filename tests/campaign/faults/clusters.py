"""What happens to the clusters: API servers and etcd, kinds and namespaces, and objects changed by hand."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from random import Random

from campaign import manifests
from campaign.manifests import Place
from campaign.model import FLEETING
from campaign.stage import Stage
from kit.kinds import definition
from kube.errors import KubeError, NotFound
from kube.objects import Key
from kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, SECRETS
from localprocesses.local import LocalProcessError

_GONE_SECONDS = 90.0
_CATCH_UP_SECONDS = 8.0
"""Until an API server that was restarted knows all webhooks and has connections to them."""


def _excuse(stage: Stage, cluster: str) -> contextlib.AbstractContextManager[None]:
    """The API server queries the webhooks itself, so while it is away or comes back it may not get an answer."""
    if cluster == "target":
        return stage.excused("the API server of the target cluster was away", after=_CATCH_UP_SECONDS)
    return contextlib.nullcontext()


@contextlib.asynccontextmanager
async def apiserver_restarted(stage: Stage, *, cluster: str, kill: bool) -> AsyncIterator[None]:
    api_server = stage.clusters[cluster]
    with _excuse(stage, cluster):
        await asyncio.to_thread(api_server.stop_apiserver, kill=kill)
        try:
            yield
        finally:
            await _again(api_server.start_apiserver)


async def _again(start: object) -> None:
    """On a machine that is busy a start may take longer than its bound; then it goes on starting."""
    assert callable(start)
    for _ in range(3):
        try:
            await asyncio.to_thread(start)
            return
        except LocalProcessError as error:
            if "runs already" in str(error):
                return
            await asyncio.sleep(1)


@contextlib.asynccontextmanager
async def etcd_restarted(stage: Stage, *, cluster: str, kill: bool) -> AsyncIterator[None]:
    etcd = stage.clusters[cluster]
    with _excuse(stage, cluster):
        await asyncio.to_thread(etcd.stop_etcd, kill=kill)
        try:
            yield
        finally:
            await _again(etcd.start_etcd)


@contextlib.asynccontextmanager
async def compacted(stage: Stage, *, cluster: str) -> AsyncIterator[str]:
    """Etcd forgets the past, and with the API server's memory gone, no watch can go on from where it was."""
    try:
        revision = str(await asyncio.to_thread(stage.clusters[cluster].compact))
    except (OSError, LocalProcessError) as error:
        revision = f"nothing: {error}"
    async with apiserver_restarted(stage, cluster=cluster, kill=True):
        yield f"up to {revision}"


@contextlib.asynccontextmanager
async def kind_deleted(stage: Stage) -> AsyncIterator[None]:
    """With all its objects; later it is there again."""
    crd = definition(manifests.WIDGETS)
    place = Place("target", CUSTOM_RESOURCE_DEFINITIONS, "", crd["metadata"]["name"])
    await _delete(stage, place)
    try:
        yield
    finally:
        await _gone(stage, place)
        await stage.world.put(place, crd)


@contextlib.asynccontextmanager
async def namespace_deleted(stage: Stage) -> AsyncIterator[None]:
    """It is terminating for a while, as something in it is not done; later it is there again."""
    namespace = next(obj for _, obj in manifests.namespaces() if obj["metadata"]["name"] == FLEETING)
    holder = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "holder", "namespace": FLEETING, "finalizers": ["campaign.example/hold"]},
    }
    holder_place = Place("target", CONFIG_MAPS, FLEETING, "holder")
    place = Place("target", NAMESPACES, "", FLEETING)
    await stage.world.put(holder_place, holder)
    await _delete(stage, place)
    try:
        yield
    finally:
        api = stage.clusters["target"].api

        def let_go() -> None:
            with contextlib.suppress(NotFound):
                api.patch(CONFIG_MAPS.path(namespace=FLEETING, name="holder"), {"metadata": {"finalizers": None}})

        await stage.world.persist(let_go)
        await _gone(stage, place)
        await stage.world.put(place, namespace)
        stage.world.write_anew()


async def _delete(stage: Stage, place: Place) -> None:
    api = stage.clusters[place.cluster].api

    def delete() -> None:
        with contextlib.suppress(NotFound):
            api.delete(place.resource.path(name=place.name))

    await stage.world.persist(delete)


async def _gone(stage: Stage, place: Place) -> None:
    """Raises TimeoutError."""
    client = stage.world.clients[place.cluster]
    async with asyncio.timeout(_GONE_SECONDS * stage.patience):
        while True:
            try:
                await client.get(place.resource, place.name, timeout=10)
            except NotFound:
                return
            except KubeError:
                pass
            await asyncio.sleep(0.2)


@contextlib.asynccontextmanager
async def objects_changed(stage: Stage, *, share: float, delete: bool) -> AsyncIterator[str]:
    """A user changes or deletes what we manage; all of it has to be as it was."""
    wanted = manifests.expected(stage.world.model)
    chosen = sorted(wanted.managed, key=str)
    dice = Random(f"{share}/{len(chosen)}")
    chosen = dice.sample(chosen, int(len(chosen) * share))
    done = 0
    for place in chosen:
        client = stage.world.clients["target"]
        with contextlib.suppress(KubeError, TimeoutError):
            if delete:
                await client.delete(place.resource, Key(place.namespace, place.name), timeout=5)
            else:
                await client.patch(place.resource, Key(place.namespace, place.name), _vandalism(place), timeout=5)
            done += 1
    yield f"{done} objects"


def _vandalism(place: Place) -> dict[str, object]:
    """Takes away who it belongs to, and what it reports."""
    origin = {"metadata": {"annotations": {"resources.gardener.cloud/description": "changed by hand"}}}
    if place.resource in (CONFIG_MAPS, SECRETS):
        return {**origin, "data": {"version": "Y2hhbmdlZA=="}}
    return {"metadata": {**origin["metadata"], "labels": {"version": "changed"}}}
