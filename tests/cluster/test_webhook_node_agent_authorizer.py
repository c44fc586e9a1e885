"""What the authorizer of node agents finds out from real clusters, from the bytes of a review to those of the answer."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from config.resource_manager.webhooks import NodeAgentAuthorizer
from devcluster.cluster import Cluster
from gardener.api.kinds import MACHINES
from gardener.keys import NODE_AGENT_SECRET_NAME, NODE_AGENT_USER_PREFIX, NODE_AGENTS_GROUP
from kit.kinds import serve
from kit.objects import encoded, obj, pod, secret
from kit.world import World
from kube.objects import Object
from kube.resources import NODES
from process.clusters import Cluster as ConnectedCluster
from process.clusters import Clusters, endpoints
from process.configuration.blocks import ClientConnection
from webhooks.handlers.node_agent_authorizer import authorizer
from webhooks.handlers.node_agent_authorizer.files import KEY
from webhooks.handlers.node_agent_authorizer.rules import COMMON_SECRETS

POOL_LABEL = "worker.gardener.cloud/pool"


class NodeWorld(World):
    """A Node of the test's own, its Machine, a pod on it, and the Secret with what has to be on it."""

    def __init__(self, connected: ConnectedCluster, namespace: str) -> None:
        super().__init__(connected.client, namespace)
        self.connected = connected
        self.node = f"node-{uuid.uuid4().hex[:8]}"

    async def ask(self, machine: str, settings: NodeAgentAuthorizer, **attributes: Any) -> Any:
        spec = {
            "user": NODE_AGENT_USER_PREFIX + machine,
            "groups": [NODE_AGENTS_GROUP],
            "resourceAttributes": attributes,
        }
        body = orjson.dumps({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
        answer = await authorizer(settings, self.connected, self.connected)(body, "application/json")
        return orjson.loads(answer)["status"]

    def with_machines(self) -> NodeAgentAuthorizer:
        return NodeAgentAuthorizer(enabled=True, machine_namespace=self.namespace)


WITHOUT_MACHINES = NodeAgentAuthorizer(enabled=True)


@pytest.fixture
async def world(cluster: Cluster, namespace: str) -> AsyncIterator[NodeWorld]:
    environment = {**os.environ, "KUBERNETES_SERVICE_HOST": ""}
    connection = ClientConnection(kubeconfig=str(cluster.kubeconfig))
    (both,) = endpoints({"both": connection}, environment=environment)
    clusters = Clusters(user_agent="authorizer-test", component="test")
    connected = clusters.open(both)
    try:
        own = NodeWorld(connected, namespace)
        await asyncio.to_thread(serve, cluster, MACHINES)
        await create(own)
        yield own
        await own.delete("Node", own.node)
        for name in (f"osc-{own.node}", f"other-{own.node}"):
            await own.remove("Secret", name, namespace="kube-system")
    finally:
        await clusters.close_all()


async def create(own: NodeWorld) -> None:
    osc = f"osc-{own.node}"
    labels = {NODE_AGENT_SECRET_NAME: osc, "kubernetes.io/hostname": "host-1"}
    await own.create(obj(NODES, own.node, labels=labels, spec={"unschedulable": True}))
    spec = {"nodeTemplate": {"metadata": {"labels": {NODE_AGENT_SECRET_NAME: osc}}}}
    await own.create(obj(MACHINES, "m1", labels={"node": own.node}, spec=spec))
    await own.create(obj(MACHINES, "new", spec=spec))
    # Pods of Nodes that do not exist are deleted after a while.
    for name, node in (("mine", own.node), ("other", "node-0")):
        await own.create(pod(name, nodeName=node))
    text = f"""
        spec:
          files:
          - {{content: {{secretRef: {{name: for-all}}}}}}
          - {{hostName: {own.node}, content: {{secretRef: {{name: for-its-host}}}}}}
          - {{hostName: host-1, content: {{secretRef: {{name: for-another-host}}}}}}
    """
    await own.create(configured(osc, text))


def configured(name: str, text: str) -> Object:
    return secret(name, {KEY: text}, namespace="kube-system", labels={POOL_LABEL: "pool"})


NO_OPINION = {"allowed": False}
"""Neither allowed nor denied."""


@pytest.mark.parametrize("with_machines", [False, True])
async def test_an_agent_gets_what_is_its_own(world: NodeWorld, with_machines: bool) -> None:
    settings = world.with_machines() if with_machines else WITHOUT_MACHINES
    machine = "m1" if with_machines else world.node

    async def ask(verb: str, resource: str, name: str, namespace: str = "", group: str = "") -> Any:
        attributes = {"verb": verb, "resource": resource, "name": name, "namespace": namespace, "group": group}
        return await world.ask(machine, settings, **attributes)

    allowed = {"allowed": True}
    assert await ask("get", "nodes", world.node) == allowed
    assert (await ask("get", "nodes", "other"))["denied"]
    lease = f"gardener-node-agent-{world.node}"
    assert await ask("update", "leases", lease, "kube-system", "coordination.k8s.io") == allowed
    assert await ask("delete", "pods", "mine", world.namespace) == allowed
    assert (await ask("delete", "pods", "other", world.namespace))["denied"]
    missing = await ask("get", "pods", "missing", world.namespace)
    text = f'500 error getting pod "{world.namespace}/missing": pods "missing" not found'
    assert missing == {"allowed": False, "evaluationError": text}
    assert await ask("get", "secrets", "gardener-valitail", "kube-system") == allowed
    assert await ask("get", "secrets", "shoot-access-cluster-admin", "kube-system") == NO_OPINION
    for name in (f"osc-{world.node}", "for-all", "for-its-host"):
        assert await ask("get", "secrets", name, "kube-system") == (allowed if with_machines else NO_OPINION)
    of_config = await ask("get", "leases", f"osc-{world.node}", "kube-system", "coordination.k8s.io")
    assert of_config == (allowed if with_machines else NO_OPINION)
    names = " ".join([*COMMON_SECRETS, f"osc-{world.node}", "for-all", "for-its-host"])
    denied = f'gardener-node-agent can only access secrets [{names}] in "kube-system" namespace'
    foreign = await ask("get", "secrets", "foreign", "kube-system")
    assert foreign == ({"allowed": False, "denied": True, "reason": denied} if with_machines else NO_OPINION)


@pytest.mark.parametrize("with_machines", [False, True])
async def test_what_an_agent_writes_into_its_node_gives_it_nothing(world: NodeWorld, with_machines: bool) -> None:
    """Another pool's Secret, and another host's."""
    other = f"other-{world.node}"
    await world.create(configured(other, "spec: {files: [{content: {secretRef: {name: for-others}}}]}"))
    settings, machine = (world.with_machines(), "m1") if with_machines else (WITHOUT_MACHINES, world.node)
    written = {NODE_AGENT_SECRET_NAME: other, "kubernetes.io/hostname": "host-1", POOL_LABEL: "other"}
    await world.patch("Node", world.node, {"metadata": {"labels": written}})
    for resource, group, name in (
        ("secrets", "", other),
        ("secrets", "", "for-others"),
        ("secrets", "", "for-another-host"),
        ("leases", "coordination.k8s.io", other),
    ):
        requested = {"verb": "get", "resource": resource, "group": group, "name": name, "namespace": "kube-system"}
        status = await world.ask(machine, settings, **requested)
        assert not status["allowed"], name
        assert "evaluationError" not in status
        assert status.get("denied", False) is with_machines, name


async def test_a_machine_without_a_node_gets_nothing_of_one(world: NodeWorld) -> None:
    settings = world.with_machines()
    requested = {"verb": "get", "resource": "pods", "name": "mine", "namespace": world.namespace}
    denied = await world.ask("new", settings, **requested)
    assert denied == {"allowed": False, "denied": True, "reason": 'no node for "new" found'}
    unknown = await world.ask("unknown", settings, **requested)
    assert unknown["evaluationError"].startswith('500 error getting machine "unknown": machines.machine.sapcloud.io')
    requested = {"verb": "get", "resource": "secrets", "name": "for-another-host", "namespace": "kube-system"}
    assert (await world.ask("new", settings, **requested))["allowed"], "it is not known yet whose host it is"


async def test_who_only_reports_that_it_will_join_learns_nothing(world: NodeWorld) -> None:
    """A client with a bootstrap token can get a certificate for any name that no Node has."""
    for name in (f"osc-{world.node}", "for-all", *COMMON_SECRETS, "shoot-access-cluster-admin"):
        requested = {"verb": "get", "resource": "secrets", "name": name, "namespace": "kube-system"}
        assert await world.ask("to-come", WITHOUT_MACHINES, **requested) == NO_OPINION


async def test_a_broken_secret_is_an_error_without_its_content(world: NodeWorld) -> None:
    broken = {"data": encoded({KEY: "[secret"})}
    await world.patch("Secret", f"osc-{world.node}", broken, namespace="kube-system")
    requested = {"verb": "get", "resource": "secrets", "name": "for-all", "namespace": "kube-system"}
    status = await world.ask("m1", world.with_machines(), **requested)
    name = f"kube-system/osc-{world.node}"
    assert status["evaluationError"] == f'500 {KEY} of secret "{name}" is not an OperatingSystemConfig'
