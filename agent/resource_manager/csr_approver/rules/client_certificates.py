"""Who gets a client certificate of a node agent, or of gardenadm.

Others use the same signer: requests with any other common name are none of our business.
"""

from dataclasses import dataclass

from agent.resource_manager.csr_approver.rules import contents
from agent.resource_manager.csr_approver.rules.contents import unfit
from agent.resource_manager.csr_approver.rules.decisions import Approval, Check, Decision, Denial, NoOpinion, quoted
from gardener import keys
from kube.signing_requests import SigningRequest

BOOTSTRAP_USER_PREFIX = "system:bootstrap:"

_PREFIXES = (keys.NODE_AGENT_USER_PREFIX, keys.GARDENADM_USER_PREFIX)


@dataclass(frozen=True, slots=True)
class Machine:
    """A Machine that exists."""

    node_name: str
    """Of the Node that it became; empty if it has not become one yet."""


def machine_of(request: SigningRequest) -> str | Decision:
    """The name of the Machine whose node agent asks; or what the request alone decides."""
    names = request.asked.common_names
    if not any(name.startswith(_PREFIXES) for name in names):
        return NoOpinion()
    if len(names) > 1:
        return Denial(Check.COMMON_NAME, "CSR has more than one common name")
    if names[0].startswith(keys.GARDENADM_USER_PREFIX):
        return _check_gardenadm(request)
    return unfit(request, contents.NODE_AGENT) or names[0].removeprefix(keys.NODE_AGENT_USER_PREFIX)


def check_user(request: SigningRequest, machine_name: str, machine: Machine | None) -> Decision | Machine:
    """What the user decides once the Machine was looked for; a Machine: whether its Node exists decides."""
    if machine is None:
        return Denial(Check.MACHINE, f"machine {quoted(machine_name)} does not exist", may_change=True)
    username, common_name = request.username, request.asked.common_names[0]
    if username.startswith(BOOTSTRAP_USER_PREFIX):
        return machine if machine.node_name else Approval()
    if not username.startswith(keys.NODE_AGENT_USER_PREFIX):
        reason = f"username {quoted(username)} is not allowed to create CSRs for a gardener-node-agent"
        return Denial(Check.USERNAME, reason)
    if username != common_name:
        reason = f"username {quoted(username)} and commonName {quoted(common_name)} do not match"
        return Denial(Check.COMMON_NAME, reason)
    return Approval()


def check_bootstrap(machine_name: str, *, node_exists: bool) -> Decision:
    """A bootstrap token is good for one certificate: that of a machine that has not become a Node yet."""
    if not node_exists:
        return Approval()
    name = quoted(machine_name)
    reason = f"Cannot use bootstrap token since gardener-node-agent for machine {name} is already bootstrapped"
    return Denial(Check.ALREADY_BOOTSTRAPPED, reason, may_change=True)


def _check_gardenadm(request: SigningRequest) -> Decision:
    if not request.username.startswith(BOOTSTRAP_USER_PREFIX):
        reason = f"username {quoted(request.username)} is not allowed to create CSRs for a gardenadm client"
        return Denial(Check.USERNAME, reason)
    return unfit(request, contents.GARDENADM) or Approval()
