"""Agents, as their Leases describe them."""

from gardener import keys
from gardener.responsibility import class_of, handles
from kube.objects import Object, annotations, metadata
from kube.resources import LEASES
from kube.runtime.client import Selection
from kubectl.session import Session

LEASE = "gardener-resource-manager"


async def leases_in(session: Session, namespace: str) -> list[Object]:
    """In one namespace Leases of other names are found, too; in all there are as many Leases as Nodes."""
    selector = "" if namespace else f"metadata.name={LEASE}"
    found = await session.source.client.list(LEASES, Selection(namespace=namespace, field_selector=selector))
    return [lease for lease in found if metadata(lease)["name"] == LEASE or keys.CLASS in annotations(lease)]


def may_handle(lease: Object, managed_resource: Object) -> bool:
    """Whether the agent of a Lease may be in charge of a ManagedResource: it is, unless it says another class."""
    own = annotations(lease).get(keys.CLASS)
    return own is None or handles(own, class_of(managed_resource))
