"""Agents that share the work of one cluster, by namespace or by class."""

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.processes.agent import AgentProcess, configuration
from kit.rig import Agent, Rig

MASTERS = ("system:masters",)


@dataclass(frozen=True, slots=True)
class Shard:
    name: str
    user: str
    """Who calls, in the audit log."""
    rig: Rig


class ShardAgent(Agent):
    """An agent with a share and a Lease of its own.

    Args:
        namespaces: of its share; none: its class is its share.
        groups: that give it rights.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        name: str,
        lease_namespace: str,
        resource_class: str,
        managed_by: str,
        namespaces: Sequence[str] = (),
        groups: Sequence[str] = MASTERS,
        leader_election: bool = True,
    ) -> None:
        super().__init__(cluster, resource_class=resource_class, managed_by=managed_by)
        self.name = name
        self.user = f"agent-{name}"
        self.elects = leader_election
        election = {"resourceName": name, "leaderElect": leader_election}
        self._own = configuration(lease_namespace, leaderElection=election, controllers=self._config["controllers"])
        self._own["sourceClientConnection"] = self._own["targetClientConnection"] = {"namespaces": list(namespaces)}
        self._own_kubeconfig = cluster.kubeconfig_for(self.user, groups)

    def start(self) -> AgentProcess:
        return AgentProcess(self._own, kubeconfig=self._own_kubeconfig).start()


def agents_by_class(cluster: Cluster, namespace: str, *, leader_election: bool = True) -> list[tuple[ShardAgent, str]]:
    """Two agents of one namespace, each of a class of its own."""
    mark = uuid.uuid4().hex[:8]
    agents = [
        ShardAgent(
            cluster,
            name=name,
            lease_namespace=namespace,
            resource_class=f"c{name}",
            managed_by=name,
            leader_election=leader_election,
        )
        for name in (f"{mark}-a", f"{mark}-b")
    ]
    return [(agent, namespace) for agent in agents]


def agents_by_namespace(
    cluster: Cluster, namespace: str, other: str, *, groups: Sequence[str] = MASTERS, leader_election: bool = True
) -> list[tuple[ShardAgent, str]]:
    """Two agents of one class, each with a namespace of its own."""
    mark = uuid.uuid4().hex[:8]
    return [
        (
            ShardAgent(
                cluster,
                name=name,
                lease_namespace=namespace,
                resource_class=f"c{mark}",
                managed_by=mark,
                namespaces=[place],
                groups=groups,
                leader_election=leader_election,
            ),
            place,
        )
        for name, place in ((f"{mark}-a", namespace), (f"{mark}-b", other))
    ]


@contextlib.contextmanager
def sharing(cluster: Cluster, agents: Sequence[tuple[ShardAgent, str]]) -> Iterator[list[Shard]]:
    """Agents, each with the namespace in which its ManagedResources are, at work."""
    install_crd(cluster)
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(agent.start()) for agent, _ in agents]
        for (agent, _), process in zip(agents, processes, strict=True):
            process.wait_until_ready()
            if agent.elects:
                process.wait_until_leading()
        yield [
            Shard(agent.name, agent.user, Rig(cluster, namespace, agent, process))
            for (agent, namespace), process in zip(agents, processes, strict=True)
        ]
