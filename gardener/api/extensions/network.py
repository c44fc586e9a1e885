"""Network: the network between Pods."""

from gardener.api.definition import Column
from gardener.api.extensions import NETWORKS
from gardener.api.extensions.common import definition
from gardener.api.schema import Schema, array, immutable, string


def _families(description: str) -> Schema:
    return array(description, string("A family.", enum=["IPv4", "IPv6"]))


NETWORK = definition(
    NETWORKS,
    "The network between the Pods of a Shoot.",
    spec={
        "podCIDR*": string("Addresses of Pods; a CIDR. Immutable."),
        "serviceCIDR*": string("Addresses of Services; a CIDR. Immutable."),
        "ipFamilies": _families("Families of addresses. Default: IPv4. From IPv4 alone, it may change to both."),
    },
    status={"ipFamilies": _families("Families of addresses that the network has.")},
    columns=(Column("Pod CIDR", ".spec.podCIDR"),),
    rules=[immutable("podCIDR"), immutable("serviceCIDR")],
)
