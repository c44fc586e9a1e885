"""What a decision on a CertificateSigningRequest queries, in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.resource_manager.csr_approver.rules import Machine
from kube.objects import Object


@dataclass(slots=True)
class KnownObjects:
    nodes: Mapping[str, Object]
    machines: Mapping[str, str]
    """Names of Machines and of the Nodes they became, if any."""
    machine_namespace: str | None = "shoot--a"
    """None: Machines are not checked."""
    questions: list[str] = field(default_factory=list)
    """What was queried, in this order."""

    async def node(self, name: str) -> Object | None:
        self.questions.append(f"node {name}")
        return self.nodes.get(name)

    async def machines_of_node(self, node_name: str) -> int | None:
        self.questions.append(f"machines of {node_name}")
        return None if self.machine_namespace is None else list(self.machines.values()).count(node_name)

    async def machine(self, name: str) -> Machine | None:
        self.questions.append(f"machine {name}")
        if self.machine_namespace is None:
            return Machine(name)
        return Machine(self.machines[name]) if name in self.machines else None
