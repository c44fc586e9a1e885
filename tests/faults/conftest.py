"""A garden of which each test may see all that is in it, so that no other tests work on it.

Files that use it have names that end with `of_a_garden.py`, by which they come to one process (see `tests/conftest.py`).
Their tests leave nothing behind that controllers would work on.
"""

from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from kit.garden import Garden, installed


@pytest.fixture(scope="package")
def garden(devcluster_run: RunClusters) -> Iterator[Garden]:
    with Cluster() as cluster:
        yield installed(cluster)
