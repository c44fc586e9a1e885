"""Many deletions at once do not keep others waiting. What is reported is the order of calls, not their time."""

from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.faults import Delay, Rule
from devcluster.testing.proxy import FaultProxy
from kit.eventually import soon
from kit.managed_resources import USER_AGENT, ManagedWorld, config_map, control_loop, install_crd
from kit.proxied import proxied
from kube.objects import Key
from kube.resources import CONFIG_MAPS
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport

COUNT = 40


@pytest.mark.parametrize("known", ["since the start", "since a change"])
async def test_a_drift_is_repaired_while_many_are_deleted(
    known: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    install_crd(cluster)
    async with (
        Transport(load_kubeconfig(cluster.kubeconfig)) as direct,
        proxied(cluster, tmp_path) as (proxy, transport),
    ):
        world = ManagedWorld(Client(direct, user_agent="test"), namespace)
        leaving = [f"leaving-{number}" for number in range(COUNT)]
        wanted = {name: [config_map(name)] for name in leaving} | {"staying": [config_map("kept")]}
        if known == "since the start":
            await world.want(wanted)
        async with control_loop(Client(transport, user_agent=USER_AGENT), namespace) as loop:
            if known == "since a change":
                await world.want(wanted)
            await world.settle()
            await soon(lambda: loop.controller.queue.is_idle)
            proxy.rules.add(Rule(fault=Delay(seconds=10.0), methods=("DELETE",)))
            await world.want(dict.fromkeys(leaving))
            await soon(lambda: deletions(proxy) > 0 and len(loop.controller.queue) > COUNT / 2)
            changed = {"data": {"version": "by hand"}}
            await world.client.patch(CONFIG_MAPS, Key(namespace, "kept"), changed)
            before = deletions(proxy)
            await soon(lambda: any(entry.request.method == "PUT" for entry in proxy.log))
            meanwhile = deletions(proxy) - before
            proxy.rules.clear()
            await world.settle()
    assert meanwhile <= COUNT / 5, f"{meanwhile} of {COUNT} objects were deleted meanwhile"


def deletions(proxy: FaultProxy) -> int:
    return sum(entry.request.method == "DELETE" for entry in proxy.log)
