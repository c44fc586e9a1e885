"""Waiting for kinds: an API server takes a CustomResourceDefinition well before it serves what it defines."""

import asyncio
import time

from devcluster.cluster import Cluster
from kube.client import Client
from kube.errors import NotFound, TooManyRequests
from kube.resources import Resource

_PATIENCE = 60.0


def wait_until_served(cluster: Cluster, *paths: str) -> None:
    """Returns when the collections at all these paths can be listed."""
    deadline = time.monotonic() + _PATIENCE
    for path in paths:
        while not _is_served(cluster, path):
            assert time.monotonic() < deadline, f"waited in vain for {path} to be served"
            time.sleep(0.05)


async def kinds_are_served(client: Client, *kinds: Resource) -> None:
    """The same on an event loop."""
    async with asyncio.timeout(_PATIENCE):
        for kind in kinds:
            while not await _can_be_read(client, kind.path()):
                await asyncio.sleep(0.05)


def _is_served(cluster: Cluster, path: str) -> bool:
    try:
        cluster.api.get(path)
    except (NotFound, TooManyRequests):
        return False
    return True


async def _can_be_read(client: Client, path: str) -> bool:
    try:
        await client.read(path)
    except (NotFound, TooManyRequests):
        return False
    return True
