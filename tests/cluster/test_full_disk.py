"""A disk is full, so that no log entry can be written: the programs go on with their work, and end when they are requested to."""

import uuid

from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource
from kit.processes.agent import AgentProcess, sole_configuration
from kit.processes.webhooks import SECCOMP, SECCOMP_PROFILE, WebhookProcess, ask, client
from kit.world import Place

FULL = ("sh", "-c", 'exec "$@" >/dev/full 2>&1', "sh")
"""Runs a program whose output meets `no space left on device`."""


def test_an_agent_goes_on_without_its_log(cluster: Cluster, namespace: str) -> None:
    install_crd(cluster)
    place, own_class = Place(cluster, namespace), f"c{uuid.uuid4().hex[:8]}"
    agent = AgentProcess(
        sole_configuration(controllers={"resourceClass": own_class}, logLevel="debug"),
        kubeconfig=cluster.kubeconfig,
    )
    agent.prefix = FULL
    with agent:
        agent.wait_until_ready()
        # One is an error, and is logged with a stack trace.
        place.create(bundle("bad", {"apiVersion": "v1", "kind": "ConfigMap"}))
        place.create(bundle("good", config_map(f"{namespace}/c")))
        for name in "bad", "good":
            place.create(managed_resource(name, spec={"class": own_class}))
        agent.wait_for(lambda: place.statuses("good")[0] == "True", what="the good one to be applied")
        agent.wait_for(lambda: place.statuses("bad")[0] == "False", what="the bad one to be refused")
        place.patch("ConfigMap", "c", {"data": {"k": "by hand"}})
        agent.wait_for(lambda: place.get("ConfigMap", "c")["data"] == {"k": "v"}, what="the drift to be corrected")
        for name in "bad", "good":
            place.delete("ManagedResource", name)
        agent.wait_for(lambda: place.find("ConfigMap", "c") is None, what="it to be removed")
    assert agent.exit_code == 0


async def test_webhooks_answer_without_their_log(cluster: Cluster) -> None:
    server = WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig, logLevel="debug")
    server.prefix = FULL
    with server:
        await server.until_ready()
        async with client() as session:
            async with session.post(server.url + SECCOMP, data=b"{"):
                pass  # which is logged
            assert (await ask(session, server.url + SECCOMP))["allowed"]
    assert server.exit_code == 0
