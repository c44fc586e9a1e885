"""Infrastructure: the network and other prerequisites of machines."""

from gardener.api.extensions import INFRASTRUCTURES
from gardener.api.extensions.common import CREDENTIALS, REGION_COLUMN, SSH_PUBLIC_KEY, definition, region
from gardener.api.schema import immutable, string, strings, struct

INFRASTRUCTURE = definition(
    INFRASTRUCTURES,
    "Provider-specific infrastructure that the machines of a Shoot require, such as a network.",
    spec={"region*": region("the Shoot"), "secretRef*": CREDENTIALS, "sshPublicKey": SSH_PUBLIC_KEY},
    status={
        "nodesCIDR": string("Network of the nodes, where it was not given; a CIDR."),
        "egressCIDRs": strings("Addresses that connections of the nodes come from; CIDRs."),
        "networking": struct(
            "Networks that the infrastructure has chosen; CIDRs.",
            {
                "pods": strings("Networks of Pods."),
                "nodes": strings("Networks of nodes."),
                "services": strings("Networks of Services."),
            },
        ),
    },
    columns=(REGION_COLUMN,),
    rules=[immutable("region")],
)
