import uuid
from collections.abc import Iterator

import pytest
from agent_process import AgentProcess
from managed_resource_rig import Agent, Rig
from managed_world import install_crd

from devcluster.cluster import Cluster


@pytest.fixture(scope="session")
def own_agent(cluster: Cluster) -> Agent:
    """An agent of this test process; see `own_agent_process`."""
    install_crd(cluster)
    return Agent(cluster, resource_class=f"c{uuid.uuid4().hex[:8]}")


@pytest.fixture(scope="session")
def own_agent_process(own_agent: Agent) -> Iterator[AgentProcess]:
    """It runs as long as the test process; do not stop it."""
    with own_agent.start() as process:
        yield process


@pytest.fixture
def rig(cluster: Cluster, namespace: str, own_agent: Agent, own_agent_process: AgentProcess) -> Rig:
    """A namespace in which the agent manages what the test writes."""
    return Rig(cluster, namespace, own_agent, own_agent_process)
