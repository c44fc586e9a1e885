"""Nothing follows from answers that no API server gave; see `kit.crash.answers`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from config.resource_manager.webhooks import (
    HighAvailabilityConfig,
    ProjectedTokenMount,
    SystemComponentsConfig,
    Webhook,
    Webhooks,
)
from devcluster.cluster import Cluster as DevCluster
from devcluster.testing.faults import Fault, WatchEnd
from kit.crash.answers import ANSWERS, Answers, Strangers, answers_of
from kit.crash.scenes_alone import Certificates, InstalledConfigurations, Leadership, RotatedCertificates
from kit.crash.scenes_managed import Change, Creation, Deletion, HandOverByDeletion, Release
from kit.crash.scenes_of_agents import (
    Garbage,
    InvalidatedToken,
    Policies,
    RenewedTokenOfKubeconfig,
    TokenInTarget,
    TouchedWorkloads,
)
from kit.crash.sweep import Scene
from kit.eventually import soon
from kit.managed_resources import install_crd
from kit.proxied import proxied
from kube.objects import Key
from kube.runtime.cache import Caches
from kube.runtime.cache import Change as Event
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery
from kube.runtime.watch import Timings
from process.caches import fill
from process.clusters import Cluster
from webhooks.handlers import projected_token_mount
from webhooks.registry import enabled
from webhooks.state import NAMESPACES_VIEW, Lister, Namespace, SharedListers

SCENES: list[type[Scene]] = [
    *(Creation, Change, Deletion, HandOverByDeletion, Release),
    *(Garbage, TokenInTarget, RenewedTokenOfKubeconfig, InvalidatedToken, Policies, TouchedWorkloads),
    *(Leadership, Certificates, RotatedCertificates, InstalledConfigurations),
]
_QUICK = Timings(first_back_off=0.02, longest_back_off=0.1)
_WEBHOOKS = Webhooks(
    high_availability_config=HighAvailabilityConfig(enabled=True, behavior="latest"),
    projected_token_mount=ProjectedTokenMount(enabled=True),
    system_components_config=SystemComponentsConfig(enabled=True, node_selector={"test.example.com/none": "true"}),
    pod_kube_apiserver_load_balancing=Webhook(enabled=True),
)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_nothing_follows_from_an_answer_that_no_api_server_gave(scene: type[Scene], cluster: DevCluster) -> None:
    install_crd(cluster)
    await Answers(scene, cluster).check(answers_of(SCENES.index(scene)))


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.name)
async def test_the_caches_of_webhooks_lose_nothing_by_it(
    answer: Fault, cluster: DevCluster, namespace: str, tmp_path: Path
) -> None:
    cluster.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {"seen": "1"}}})
    lost: list[str] = []

    def note(change: Event[Any]) -> None:
        if change.new is None and change.key in (Key("", namespace), Key(namespace, "default")):
            lost.append(str(change.key))

    async with proxied(cluster, tmp_path) as (proxy, transport):
        client = Client(transport, user_agent="webhook-caches")
        caches = Caches(client, timings=_QUICK)
        real = Cluster(transport=transport, client=client, caches=caches, discovery=Discovery(client), namespaces=())
        state = SharedListers(real, real)
        for webhook in enabled(_WEBHOOKS):
            webhook.endpoint(webhook.settings_in(_WEBHOOKS), state)
        namespaces, accounts = state.lister(NAMESPACES_VIEW), state.lister(projected_token_mount.VIEW)
        for moment in ("at the start", "later"):
            strangers = proxy.rules = Strangers(answer)
            strangers.is_armed = True
            if moment == "at the start":
                await fill(state.start(), {"source": real}, timeout=60)
                namespaces.store.subscribe(note)
                accounts.store.subscribe(note)
            else:
                proxy.end_watches(WatchEnd.EXPIRED)
            cluster.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {"seen": moment[:2]}}})
            await soon(lambda: _is_seen(namespaces, namespace, moment[:2]))  # noqa: B023 - at once
            await soon(lambda: accounts.store.get(Key(namespace, "default")) is not None)
            assert proxy.injected[answer.name]
        assert lost == []
        await state.close()
        await caches.close()
    # Connections that were just being opened are closed in a later turn of the event loop.
    await asyncio.sleep(0.2)


def _is_seen(namespaces: Lister[Namespace], namespace: str, label: str) -> bool:
    found = namespaces.store.get(Key("", namespace))
    return found is not None and found.labels.get("seen") == label
