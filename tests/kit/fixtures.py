"""Fixtures on the clusters of `devcluster.testing.pytest_plugin`: clients, a world, and a way on which things go wrong."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.proxy import FaultProxy
from kit.managed_resources import install_crd
from kit.proxied import proxy_to
from kit.world import World, connected
from kube.runtime.client import Client


@pytest.fixture
def user_agent() -> str:
    """Of the test's own, which sets the calls it is about apart."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def admin(cluster: Cluster) -> AsyncIterator[Client]:
    """Goes to the API server directly."""
    async with connected(cluster) as client:
        yield client


@pytest.fixture
async def client(cluster: Cluster, user_agent: str) -> AsyncIterator[Client]:
    """What the test is about uses it."""
    async with connected(cluster, user_agent, client=Client) as client:
        yield client


@pytest.fixture
def world(admin: Client, namespace: str) -> World:
    return World(admin, namespace)


@pytest.fixture
async def proxy(cluster: Cluster) -> AsyncIterator[FaultProxy]:
    async with proxy_to(cluster) as running:
        yield running


@pytest.fixture
async def proxied_client(proxy: FaultProxy, cluster: Cluster, user_agent: str, tmp_path: Path) -> AsyncIterator[Client]:
    """Goes through the proxy."""
    proxy.write_kubeconfig(tmp_path / "through-proxy", token=cluster.token)
    async with connected(tmp_path / "through-proxy", user_agent, client=Client) as client:
        yield client


@pytest.fixture(scope="session")
def managed_resources(cluster: Cluster) -> None:
    """The API server serves them."""
    install_crd(cluster)
