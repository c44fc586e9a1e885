"""Bastion: a machine through which the nodes of a Shoot are reached by SSH for a while."""

from gardener.api.definition import Column
from gardener.api.extensions import BASTIONS
from gardener.api.extensions.common import definition, load_balancer_address
from gardener.api.schema import array, base64, immutable, string, strings, struct

BASTION = definition(
    BASTIONS,
    "A machine with access to the nodes of a Shoot by SSH.",
    spec={
        "userData*": base64("User data of the machine, which lets the user in. Base64. Immutable."),
        "ingress*": array(
            "Sources of allowed connections.",
            struct(
                "A range of addresses.",
                {
                    "ipBlock*": struct(
                        "Addresses of the source.",
                        {
                            "cidr*": string("The addresses as a CIDR, such as 203.0.113.0/24.", at_least=1),
                            "except": strings("Addresses among them that are not let in; CIDRs."),
                        },
                    )
                },
            ),
        ),
    },
    status={
        "ingress": load_balancer_address("Address of the machine."),
    },
    columns=(Column("IP", ".status.ingress.ip"), Column("Hostname", ".status.ingress.hostname")),
    rules=[immutable("userData")],
)
