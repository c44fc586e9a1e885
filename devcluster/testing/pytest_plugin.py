"""Fixtures with real clusters: `cluster`, `target_cluster`, `namespace`, `audit`.

There is one cluster for a whole test run, and a second one for tests that use `target_cluster`; both start when the
first test needs them. With pytest-xdist all workers share them: the clusters belong to the process that controls the
run, so they live until its end, and always end with it.

The programs are built, if necessary, after collection: no time limit of a test is running then.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from localprocesses.assets import find_or_build
from localprocesses.local import wait_until

CONTROL_PLANE = "control_plane"
_NODES = 3
_ROLES = ("source", "target")


@dataclass(frozen=True, slots=True)
class RunClusters:
    """Clusters of a test run; `owner` is the process that controls it, under pytest-xdist the workers' parent."""

    owner: int

    def name(self, role: str) -> str:
        return f"test-{self.owner}-{role}"

    def cluster(self, role: str) -> Cluster:
        return Cluster(name=self.name(role), nodes=_NODES, owner=self.owner).start()


_RUN = pytest.StashKey[RunClusters]()
_WORKER_INPUT = "devcluster_owner"


def pytest_configure(config: pytest.Config) -> None:
    from_controller = getattr(config, "workerinput", {})
    config.stash[_RUN] = RunClusters(owner=from_controller.get(_WORKER_INPUT, os.getpid()))
    config.addinivalue_line("markers", f"{CONTROL_PLANE}: set for tests that need a cluster, by their fixtures")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist: pass the run to a worker before it starts."""
    node.workerinput[_WORKER_INPUT] = os.getpid()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests with clusters before `-m` selects tests."""
    for item in items:
        if _needs_cluster(item):
            item.add_marker(CONTROL_PLANE)


def pytest_collection_finish(session: pytest.Session) -> None:
    if any(map(_needs_cluster, session.items)):
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            find_or_build()


def _needs_cluster(item: pytest.Item) -> bool:
    return "devcluster_run" in getattr(item, "fixturenames", ())


def pytest_unconfigure(config: pytest.Config) -> None:
    run = config.stash[_RUN]
    if run.owner == os.getpid():
        for role in _ROLES:
            cluster = Cluster.running(run.name(role))
            if cluster:
                cluster.stop()


@pytest.fixture(scope="session")
def devcluster_run(request: pytest.FixtureRequest) -> RunClusters:
    """Settings for clusters of this run; tests that start their own use this fixture, so that programs are built."""
    return request.config.stash[_RUN]


@pytest.fixture(scope="session")
def cluster(devcluster_run: RunClusters) -> Cluster:
    """The cluster of the test run. Other tests use it at the same time: keep to a namespace, do not stop it."""
    return devcluster_run.cluster("source")


@pytest.fixture(scope="session")
def target_cluster(devcluster_run: RunClusters) -> Cluster:
    """A second cluster, for tests with a source and a target."""
    return devcluster_run.cluster("target")


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    """Name of a namespace of the test's own, in which pods can be created.

    It stays as long as the cluster: Kubernetes removes one by two calls for each kind, more than most tests make.
    """
    name = f"test-{uuid.uuid4().hex[:12]}"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_until(lambda: cluster.api.raw("GET", account)[0] == 200, what=f"{account} to exist", within=60, pause=0.01)
    return name


@pytest.fixture
def audit(cluster: Cluster) -> Iterator[Audit]:
    """Calls to the cluster's API server from now on, including those of other tests."""
    with closing(cluster.audit()) as opened:
        yield opened
