"""The cluster that scenarios are replayed in."""

from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from kit.managed_resources import install_crd


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Not the one of all tests: the agent looks after whatever is in it. It has as many nodes as `NODES` states."""
    with Cluster(nodes=request.module.NODES) as own:
        install_crd(own)
        yield own
