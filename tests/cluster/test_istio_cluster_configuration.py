"""The controller `istio-cluster-configuration` on a real API server, with Istio's kinds installed while it runs."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from agent_clusters import at_work, cluster_of, context_of
from lenient_kinds import definition
from served_kinds import kinds_are_served

from agent.istio_cluster_configuration import keys
from agent.istio_cluster_configuration.controller import IstioClusterConfigurationLoop
from config.schema_controllers import Controllers
from devcluster.cluster import Cluster
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.errors import NotFound
from kube.objects import Object, labels, uid
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, SERVICES

KINDS = (keys.DESTINATION_RULES, keys.ENVOY_FILTERS)


async def eventually(problem: Callable[[], Awaitable[str]]) -> None:
    deadline = time.monotonic() + 60
    while text := await problem():
        assert time.monotonic() < deadline, text
        await asyncio.sleep(0.05)


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[IstioClusterConfigurationLoop]:
    context = context_of(cluster_of(client), Controllers())
    loop = IstioClusterConfigurationLoop(context)
    async with at_work(context, loop):
        yield loop


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        yield Client(transport, user_agent=f"istio-{uuid.uuid4().hex}")


async def test_envoy_filters_follow_destination_rules_once_istio_is_there(client: Client, namespace: str) -> None:
    gateways = f"{namespace}-gateways"
    async with running(client) as loop:
        for kind in KINDS:
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(kind))
        marked = {"name": gateways, "labels": {"gardener.cloud/role": "istio-ingress"}}
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": marked})
        try:
            await kinds_are_served(client, *KINDS)
            loop.kinds_changed("networking.istio.io")
            await _create_service_and_rule(client, namespace, gateways)
            await eventually(lambda: _ports_are(client, namespace, gateways, [443]))
            made = await _filter(client, namespace, gateways)
            assert labels(made) == {keys.MANAGED_BY: keys.MANAGER}
            assert made["metadata"]["ownerReferences"][0]["name"] == namespace

            ports = {"spec": {"ports": [{"port": 443, "name": "https"}, {"port": 80, "name": "http"}]}}
            await client.patch(SERVICES, "svc", ports, namespace=namespace)
            await eventually(lambda: _ports_are(client, namespace, gateways, [443, 80]))

            changed = {"metadata": {"annotations": {"foreign": "x"}}, "spec": {"configPatches": []}}
            await client.patch(keys.ENVOY_FILTERS, f"{namespace}{keys.SUFFIX}", changed, namespace=gateways)
            await eventually(lambda: _ports_are(client, namespace, gateways, [443, 80]))
            again = await _filter(client, namespace, gateways)
            assert uid(again) == uid(made)
            assert again["metadata"]["annotations"] == {"foreign": "x"}

            await client.patch(NAMESPACES, gateways, {"metadata": {"labels": {"gardener.cloud/role": None}}})
            await eventually(lambda: _is_gone(client, namespace, gateways))
        finally:
            await client.delete(NAMESPACES, gateways)
            for kind in KINDS:
                await client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"{kind.plural}.{kind.group}")


async def _create_service_and_rule(client: Client, namespace: str, gateways: str) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "svc", "namespace": namespace, "annotations": {keys.EXPORT_TO: gateways}},
        "spec": {"ports": [{"port": 443, "name": "https"}]},
    }
    await client.create(SERVICES, service)
    rule = {
        "apiVersion": keys.DESTINATION_RULES.api_version,
        "kind": "DestinationRule",
        "metadata": {"name": "r", "namespace": namespace},
        "spec": {"host": f"svc.{namespace}.svc.cluster.local", "exportTo": ["*"]},
    }
    await client.create(keys.DESTINATION_RULES, rule)


async def _filter(client: Client, namespace: str, gateways: str) -> Object:
    return await client.get(keys.ENVOY_FILTERS, f"{namespace}{keys.SUFFIX}", namespace=gateways)


async def _ports_are(client: Client, namespace: str, gateways: str, ports: list[int]) -> str:
    try:
        found = await _filter(client, namespace, gateways)
    except NotFound as error:
        return str(error)
    clusters = [patch["match"]["cluster"]["name"] for patch in found["spec"]["configPatches"]]
    wanted = [f"outbound|{port}||svc.{namespace}.svc.cluster.local" for port in ports]
    return "" if clusters == wanted else f"{clusters} instead of {wanted}"


async def _is_gone(client: Client, namespace: str, gateways: str) -> str:
    try:
        return str(await _filter(client, namespace, gateways))
    except NotFound:
        return ""
