from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.processes.agent import AgentProcess
from kit.rig import OWN_CLASS, Agent, Rig


@pytest.fixture(scope="session")
def own_agent(cluster: Cluster) -> Agent:
    """An agent of this test process; see `own_agent_process`."""
    install_crd(cluster)
    return Agent(cluster, resource_class=OWN_CLASS)


@pytest.fixture(scope="session")
def own_agent_process(own_agent: Agent) -> Iterator[AgentProcess]:
    """It runs as long as the test process; do not stop it."""
    with own_agent.start() as process:
        yield process


@pytest.fixture
def rig(cluster: Cluster, namespace: str, own_agent: Agent, own_agent_process: AgentProcess) -> Rig:
    """A namespace in which the agent manages what the test writes."""
    return Rig(cluster, namespace, own_agent, own_agent_process)
