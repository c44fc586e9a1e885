"""From a CertificateSigningRequest to the decision: which rules apply, and what has to be read for them."""

from typing import Protocol

from agent.resource_manager.csr_approver.rules import client_certificates, kubelet_serving
from agent.resource_manager.csr_approver.rules.client_certificates import Machine
from agent.resource_manager.csr_approver.rules.decisions import SIGNERS, Check, Decision, Denial, NoOpinion
from agent.resource_manager.csr_approver.rules.kubelet_serving import Rules
from kube.objects import Object
from kube.signing_requests import KUBELET_SERVING, MalformedRequestError, SigningRequest, parse, signer_of


class Lookups(Protocol):
    """Reads the clusters as they are now."""

    machine_namespace: str | None
    """Where Machines are; None: they are not checked."""

    async def node(self, name: str) -> Object | None: ...

    async def machines_of_node(self, node_name: str) -> int | None:
        """How many Machines became this Node; None if Machines are not checked."""

    async def machine(self, name: str) -> Machine | None:
        """Where Machines are not checked, each exists and becomes the Node of its own name."""


async def decide(csr: Object, lookups: Lookups, rules: Rules) -> Decision:
    """Raises KubeError if the clusters can't be read."""
    signer = signer_of(csr)
    if signer not in SIGNERS:
        return NoOpinion()
    serving = signer == KUBELET_SERVING
    try:
        request = parse(csr)
    except MalformedRequestError as error:
        # It cannot be known for whom a client certificate is.
        return Denial(Check.MALFORMED, f"unable to parse csr: {error}") if serving else NoOpinion()
    return await (_decide_serving(request, lookups, rules) if serving else _decide_client(request, lookups))


async def _decide_serving(request: SigningRequest, lookups: Lookups, rules: Rules) -> Decision:
    name = kubelet_serving.node_of(request)
    if isinstance(name, Denial):
        return name
    node = await lookups.node(name)
    return kubelet_serving.check_node(
        request.asked,
        name,
        node,
        machines=await lookups.machines_of_node(name) if node else None,
        machine_namespace=lookups.machine_namespace,
        rules=rules,
    )


async def _decide_client(request: SigningRequest, lookups: Lookups) -> Decision:
    name = client_certificates.machine_of(request)
    if not isinstance(name, str):
        return name
    checked = client_certificates.check_user(request, name, await lookups.machine(name))
    if isinstance(checked, Machine):
        node_exists = await lookups.node(checked.node_name) is not None
        return client_certificates.check_bootstrap(name, node_exists=node_exists)
    return checked
