"""What the authorizer of node agents finds out from real clusters, from the bytes of a review to those of the answer."""

import base64
import contextlib
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from served_kinds import kinds_are_served

from config.schema import ClientConnection
from config.schema_webhooks import NodeAgentAuthorizer
from devcluster.cluster import Cluster
from kube.client import Client
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS, SECRETS
from process.clusters import Cluster as ConnectedCluster
from process.clusters import Line, endpoints
from webhooks.handlers.node_agent_authorizer import authorizer
from webhooks.handlers.node_agent_authorizer.files import KEY
from webhooks.handlers.node_agent_authorizer.lookups import MACHINES, POOL_LABEL
from webhooks.handlers.node_agent_authorizer.rules import AGENT_SECRET_LABEL, COMMON_SECRETS, GROUP, USER_PREFIX

MACHINE_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "machines.machine.sapcloud.io"},
    "spec": {
        "group": "machine.sapcloud.io",
        "names": {"kind": "Machine", "plural": "machines"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@dataclass(frozen=True)
class World:
    """A Node of the test's own, its Machine, a pod on it, and the Secret with what has to be on it."""

    connected: ConnectedCluster
    namespace: str
    node: str

    @property
    def client(self) -> Client:
        return self.connected.client

    async def ask(self, machine: str, settings: NodeAgentAuthorizer, **attributes: Any) -> Any:
        spec = {"user": USER_PREFIX + machine, "groups": [GROUP], "resourceAttributes": attributes}
        body = orjson.dumps({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
        answer = await authorizer(settings, self.connected, self.connected)(body, "application/json")
        return orjson.loads(answer)["status"]

    def with_machines(self) -> NodeAgentAuthorizer:
        return NodeAgentAuthorizer(enabled=True, machine_namespace=self.namespace)


WITHOUT_MACHINES = NodeAgentAuthorizer(enabled=True)


@pytest.fixture
async def world(cluster: Cluster, namespace: str) -> AsyncIterator[World]:
    environment = {**os.environ, "KUBERNETES_SERVICE_HOST": ""}
    connection = ClientConnection(kubeconfig=str(cluster.kubeconfig))
    line = Line.to(endpoints(connection, connection, environment=environment).source)
    async with line.transport:
        connected = line.cluster(user_agent="authorizer-test", write_guard=None)
        own = World(connected, namespace, f"node-{uuid.uuid4().hex[:8]}")
        await install_machines(own.client)
        await create(own)
        yield own
        await own.client.delete(NODES, own.node)
        for name in (f"osc-{own.node}", f"other-{own.node}"):
            with contextlib.suppress(NotFound):
                await own.client.delete(SECRETS, name, namespace="kube-system")


async def install_machines(client: Client) -> None:
    with contextlib.suppress(AlreadyExists):
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, MACHINE_CRD)
    await kinds_are_served(client, MACHINES)


async def create(own: World) -> None:
    client, osc = own.client, f"osc-{own.node}"
    labels = {AGENT_SECRET_LABEL: osc, "kubernetes.io/hostname": "host-1"}
    await client.create(NODES, {"metadata": {"name": own.node, "labels": labels}, "spec": {"unschedulable": True}})
    machine = {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "m1", "namespace": own.namespace, "labels": {"node": own.node}},
        "spec": {"nodeTemplate": {"metadata": {"labels": {AGENT_SECRET_LABEL: osc}}}},
    }
    await client.create(MACHINES, machine)
    await client.create(MACHINES, {**machine, "metadata": {"name": "new", "namespace": own.namespace}})
    # Pods of Nodes that do not exist are deleted after a while.
    for name, node in (("mine", own.node), ("other", "node-0")):
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        await client.create(PODS, {"metadata": {"name": name, "namespace": own.namespace}, "spec": spec})
    text = """
        spec:
          files:
          - {content: {secretRef: {name: for-all}}}
          - {hostName: host-1, content: {secretRef: {name: for-host-1}}}
          - {hostName: host-2, content: {secretRef: {name: for-host-2}}}
    """
    await client.create(SECRETS, secret(osc, text))


def secret(name: str, text: str) -> Object:
    return {
        "metadata": {"name": name, "namespace": "kube-system", "labels": {POOL_LABEL: "pool"}},
        "data": {KEY: base64.b64encode(text.encode()).decode()},
    }


@pytest.mark.parametrize("with_machines", [False, True])
async def test_an_agent_gets_what_is_its_own(world: World, with_machines: bool) -> None:
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
    assert missing == {"allowed": False, "evaluationError": '500 pods "missing" not found'}
    for name in (f"osc-{world.node}", "for-all", "for-host-1", "gardener-valitail"):
        assert await ask("get", "secrets", name, "kube-system") == allowed
    names = " ".join([*COMMON_SECRETS, f"osc-{world.node}", "for-all", "for-host-1"])
    assert await ask("get", "secrets", "for-host-2", "kube-system") == {
        "allowed": False,
        "denied": True,
        "reason": f'gardener-node-agent can only access secrets [{names}] in "kube-system" namespace',
    }


async def test_a_machine_without_a_node_gets_nothing_of_one(world: World) -> None:
    settings = world.with_machines()
    asked = {"verb": "get", "resource": "pods", "name": "mine", "namespace": world.namespace}
    denied = await world.ask("new", settings, **asked)
    assert denied == {"allowed": False, "denied": True, "reason": 'no node for "new" found'}
    unknown = await world.ask("unknown", settings, **asked)
    assert unknown["evaluationError"].startswith("500 machines.machine.sapcloud.io")
    asked = {"verb": "get", "resource": "secrets", "name": "for-host-2", "namespace": "kube-system"}
    assert (await world.ask("new", settings, **asked))["allowed"], "whose host it is nobody knows yet"


async def test_who_is_about_to_join_may_read_what_any_pool_needs(world: World) -> None:
    await world.client.create(SECRETS, secret(f"other-{world.node}", "spec: {}"))
    asked = {"verb": "get", "resource": "secrets", "name": f"other-{world.node}", "namespace": "kube-system"}
    assert (await world.ask("to-come", WITHOUT_MACHINES, **asked))["allowed"]
    assert (await world.ask(world.node, WITHOUT_MACHINES, **asked))["denied"]


async def test_a_broken_secret_is_an_error_without_its_content(world: World) -> None:
    await world.client.patch(
        SECRETS,
        f"osc-{world.node}",
        # Without the label: who is about to join is shown all Secrets with it, in another test at the same time.
        {"metadata": {"labels": {POOL_LABEL: None}}, "data": secret("x", "[secret")["data"]},
        namespace="kube-system",
    )
    asked = {"verb": "get", "resource": "secrets", "name": "for-all", "namespace": "kube-system"}
    status = await world.ask("m1", world.with_machines(), **asked)
    name = f"kube-system/osc-{world.node}"
    assert status["evaluationError"] == f'500 {KEY} of secret "{name}" is no OperatingSystemConfig'
