"""Waiting for kinds: an API server takes a CustomResourceDefinition well before it serves what it defines."""

import time

from devcluster.cluster import Cluster
from kube.errors import NotFound, TooManyRequests

_PATIENCE = 60.0


def wait_until_served(cluster: Cluster, *paths: str) -> None:
    """Returns when the collections at all these paths can be listed."""
    deadline = time.monotonic() + _PATIENCE
    for path in paths:
        while not _is_served(cluster, path):
            assert time.monotonic() < deadline, f"waited in vain for {path} to be served"
            time.sleep(0.05)


def _is_served(cluster: Cluster, path: str) -> bool:
    try:
        cluster.api.get(path)
    except (NotFound, TooManyRequests):
        return False
    return True
