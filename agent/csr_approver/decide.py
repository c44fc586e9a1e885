"""From a CertificateSigningRequest to the decision: which rules apply, and which facts they need."""

from typing import Protocol

from agent.csr_approver import client_certificates, keys, kubelet_serving
from agent.csr_approver.client_certificates import Machine
from agent.csr_approver.decisions import Check, Decision, Denial, NoOpinion
from agent.csr_approver.kubelet_serving import Rules
from agent.csr_approver.request import MalformedRequestError, SigningRequest, parse, signer_of
from kube.objects import Object


class Facts(Protocol):
    """What is true in the clusters now."""

    machine_namespace: str | None
    """Where Machines are; None: they are not checked."""

    async def node(self, name: str) -> Object | None: ...

    async def machines_of_node(self, node_name: str) -> int | None:
        """How many Machines became this Node; None if Machines are not checked."""

    async def machine(self, name: str) -> Machine | None:
        """Where Machines are not checked, each exists and becomes the Node of its own name."""


async def decide(csr: Object, facts: Facts, rules: Rules) -> Decision:
    """Raises KubeError if the facts can't be read."""
    serving = signer_of(csr) == keys.KUBELET_SERVING
    try:
        request = parse(csr)
    except MalformedRequestError as error:
        # Of a client certificate nobody can tell whose business it is.
        return Denial(Check.MALFORMED, f"unable to parse csr: {error}") if serving else NoOpinion()
    return await (_decide_serving(request, facts, rules) if serving else _decide_client(request, facts))


async def _decide_serving(request: SigningRequest, facts: Facts, rules: Rules) -> Decision:
    found = kubelet_serving.node_of(request, rules)
    if isinstance(found, Denial):
        return found
    node = await facts.node(found.name)
    return kubelet_serving.judge(
        request.asked,
        found.name,
        node,
        machines=await facts.machines_of_node(found.name) if node else None,
        machine_namespace=facts.machine_namespace,
        rules=rules,
    )


async def _decide_client(request: SigningRequest, facts: Facts) -> Decision:
    name = client_certificates.machine_of(request)
    if not isinstance(name, str):
        return name
    judged = client_certificates.judge_user(request, name, await facts.machine(name))
    if isinstance(judged, Machine):
        node_exists = await facts.node(judged.node_name) is not None
        return client_certificates.judge_bootstrap(name, node_exists=node_exists)
    return judged
