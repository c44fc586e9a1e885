"""Agents, as their Leases describe them."""

from gardener import keys
from gardener.responsibility import class_of, handles
from kube.objects import Object, annotations, key, spec, text
from kube.resources import LEASES
from kube.runtime.client import Selection
from kubectl.session import Session

LEASE = "gardener-resource-manager"
_OF_NODES = "kube-node-lease"
"""Namespace with as many Leases as there are Nodes."""


async def leases_in(session: Session, namespace: str) -> list[Object]:
    """Leases of agents in a namespace, or in all."""
    selector = "" if namespace else f"metadata.namespace!={_OF_NODES}"
    found = await session.source.client.list(LEASES, Selection(namespace=namespace, field_selector=selector))
    return [lease for lease in found if _is_of_agent(lease)]


def _is_of_agent(lease: Object) -> bool:
    """Whether a Lease is an agent's, by its name, its class, or its holder: an installation may have renamed it."""
    holder = text(spec(lease).get("holderIdentity"))
    return key(lease).name == LEASE or keys.CLASS in annotations(lease) or holder.startswith(f"{LEASE}-")


def may_handle(lease: Object, managed_resource: Object) -> bool:
    """Whether the agent of a Lease may be in charge of a ManagedResource: yes, unless it is of another class."""
    own = annotations(lease).get(keys.CLASS)
    return own is None or handles(own, class_of(managed_resource))
