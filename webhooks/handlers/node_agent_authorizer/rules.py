"""Rights of a node agent: its own Node, Lease and certificate requests, the pods of its Node, a few Secrets.

A node agent is identified by its user name, which ends in the name of its machine. Rules read from `Sources` as late as
possible, so that most requests need one lookup or none.

An agent may write its own Node, so none of its rights depends on the content of that. Its Machine determines its
Secrets. If only the Node could, there is no opinion: RBAC decides, if it follows.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gardener.keys import NODE_AGENT_USER_PREFIX, NODE_AGENTS_GROUP
from gardener.rights.requests import Attributes, Selector
from webhooks.authorizers.decisions import ALLOW, NO_OPINION, Decision, deny

NAMESPACE = "kube-system"
COMMON_SECRETS = ("gardener-valitail", "gardener-opentelemetry-collector")
CONTROL_PLANE_SECRETS = (
    "shoot-access-kube-controller-manager",
    "shoot-access-kube-scheduler",
    "shoot-access-cluster-admin",
)
"""Secrets for machines with a control plane, which look like all others. A client with these has all their rights."""


class LookupFailed(Exception):
    """A cluster did not answer a lookup; the text has the object and the cause."""


class Sources(Protocol):
    """Lookups in the clusters. All methods raise LookupFailed or KubeError if a cluster does not answer."""

    async def node_of(self, machine: str) -> str | None:
        """Return the name of the Node of a machine; None if there is none."""

    async def configs_of(self, machine: str) -> Sequence[str] | None:
        """Return the Secrets with the configuration of a machine's Node; None if there are no Machines."""

    async def secrets_of(self, machine: str) -> Sequence[str] | None:
        """Return the same Secrets, and those that they refer to."""

    async def user_of_request(self, name: str) -> str:
        """Return the user that created a CertificateSigningRequest."""

    async def node_name_of_pod(self, namespace: str, name: str) -> str:
        """Return the name of the pod's Node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A request of a node agent, with everything that a rule needs."""

    requested: Attributes
    machine: str
    sources: Sources
    with_selectors: bool


_Rule = Callable[[_Case], Awaitable[Decision]]


async def authorize(requested: Attributes, sources: Sources, *, with_selectors: bool) -> Decision:
    """Decide about a request.

    Raises:
        LookupFailed, KubeError: a necessary lookup failed.
        ValueError: the request's field selector is invalid.
    """
    if not requested.user.startswith(NODE_AGENT_USER_PREFIX) or NODE_AGENTS_GROUP not in requested.groups:
        return NO_OPINION
    machine = requested.user.removeprefix(NODE_AGENT_USER_PREFIX)
    kind = _KINDS.get((requested.group, requested.resource)) if requested.is_resource_request else None
    if not machine or kind is None:
        return deny()
    if requested.subresource and requested.subresource not in kind.subresources:
        return deny(f"only the following subresources are allowed for this resource type: {_listed(kind.subresources)}")
    if requested.verb not in kind.verbs:
        return deny(f"only the following verbs are allowed for this resource type: {_listed(kind.verbs)}")
    return await kind.rule(_Case(requested=requested, machine=machine, sources=sources, with_selectors=with_selectors))


async def _certificate_signing_requests(case: _Case) -> Decision:
    requested = case.requested
    if requested.verb == "create" or await case.sources.user_of_request(requested.name) == requested.user:
        return ALLOW
    return deny(f'gardener-node-agent is only allowed to read or request CSRs for its own user "{requested.user}"')


async def _events(_: _Case) -> Decision:
    return ALLOW


async def _leases(case: _Case) -> Decision:
    requested = case.requested
    node = await case.sources.node_of(case.machine)
    if node is None:
        return _no_node(case)
    names = [f"gardener-node-agent-{node}"]
    if requested.namespace == NAMESPACE and (requested.verb == "create" or requested.name in names):
        return ALLOW
    configs = await case.sources.configs_of(case.machine)
    names += configs or ()
    if requested.namespace == NAMESPACE and requested.name in names:
        return ALLOW
    if requested.namespace == NAMESPACE and requested.name and configs is None:
        return NO_OPINION
    return deny(f'this gardener-node-agent can only access leases {_listed(names)} in "{NAMESPACE}" namespace')


async def _nodes(case: _Case) -> Decision:
    # An agent finds its Node by the hostname, before it knows the Node's name.
    if case.requested.verb in {"list", "watch"}:
        return ALLOW
    node = await case.sources.node_of(case.machine)
    if node is None:
        return _no_node(case)
    return ALLOW if case.requested.name == node else deny(f'this gardener-node-agent can only access node "{node}"')


async def _pods(case: _Case) -> Decision:
    requested = case.requested
    node = await case.sources.node_of(case.machine)
    if node is None:
        return _no_node(case)
    if requested.verb in {"list", "watch"}:
        if not case.with_selectors or ("spec.nodeName", node) in equalities(requested.field_selector):
            return ALLOW
        if not requested.name:
            return deny(f"can only list/watch pods with spec.nodeName={node} field selector")
    if await case.sources.node_name_of_pod(requested.namespace, requested.name) == node:
        return ALLOW
    return deny(f'pod "{requested.namespace}/{requested.name}" does not belong to node "{node}"')


async def _secrets(case: _Case) -> Decision:
    requested = case.requested
    secrets = await case.sources.secrets_of(case.machine)
    names = [*COMMON_SECRETS, *(secrets or ())]
    if requested.namespace == NAMESPACE and requested.name in names:
        is_known = secrets is not None or await case.sources.node_of(case.machine) is not None
        return ALLOW if is_known else NO_OPINION
    if requested.namespace == NAMESPACE and (
        requested.name in CONTROL_PLANE_SECRETS or (requested.name and secrets is None)
    ):
        return NO_OPINION
    return deny(f'gardener-node-agent can only access secrets {_listed(names)} in "{NAMESPACE}" namespace')


@dataclass(frozen=True, slots=True)
class _Kind:
    verbs: tuple[str, ...]
    rule: _Rule
    subresources: tuple[str, ...] = ()


_EVENTS = _Kind(("create", "patch"), _events)
_KINDS = {
    ("certificates.k8s.io", "certificatesigningrequests"): _Kind(("get", "create"), _certificate_signing_requests),
    ("", "events"): _EVENTS,
    ("events.k8s.io", "events"): _EVENTS,
    ("coordination.k8s.io", "leases"): _Kind(("get", "list", "watch", "create", "update"), _leases),
    ("", "nodes"): _Kind(("get", "list", "watch", "patch", "update"), _nodes, ("status",)),
    ("", "pods"): _Kind(("get", "list", "watch", "delete"), _pods),
    ("", "secrets"): _Kind(("get", "list", "watch"), _secrets),
}


def _no_node(case: _Case) -> Decision:
    return deny(f'no node for "{case.machine}" found')


def _listed(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"


def equalities(selector: Selector) -> set[tuple[str, str]]:
    """Return fields that must have a certain value, with it.

    Raises:
        ValueError: the field selector is invalid.
    """
    found = set()
    for requirement in selector.requirements:
        if requirement.operator not in {"In", "NotIn"} or len(requirement.values) != 1:
            raise ValueError(
                f'error parsing field selector: "{requirement.key}": operator "{requirement.operator}" '
                f"with {len(requirement.values)} values, it has to be In or NotIn with one"
            )
        if requirement.operator == "In":
            found.add((requirement.key, requirement.values[0]))
    for term in filter(None, selector.raw.split(",")):
        key, operator, value = _term(term)
        if operator == "=":
            found.add((key, value))
    return found


def _term(term: str) -> tuple[str, str, str]:
    for operator in ("!=", "==", "="):
        key, sign, value = term.partition(operator)
        if sign:
            return key.strip(), "!=" if operator == "!=" else "=", value.strip()
    raise ValueError(f'error parsing field selector: "{term}" has no operator; it has to be =, == or !=')
