"""Bastion: a machine through which the nodes of a Shoot are reached by SSH for a while."""

from gardener.api.definition import Column
from gardener.api.extensions import BASTIONS
from gardener.api.extensions.common import definition
from gardener.api.schema import array, base64, immutable, integer, string, strings, struct

_PORT = struct(
    "A port of a load balancer.",
    {
        "port*": integer("Its number."),
        "protocol*": string("TCP, UDP or SCTP."),
        "error": string("What is wrong with it, in one word."),
    },
)

BASTION = definition(
    BASTIONS,
    "A machine with access to the nodes of a Shoot by SSH.",
    spec={
        "userData*": base64("What the machine gets at its start: it lets the user in. Base64. Immutable."),
        "ingress*": array(
            "Where connections may come from.",
            struct(
                "A range of addresses.",
                {
                    "ipBlock*": struct(
                        "Where they come from.",
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
        "ingress": struct(
            "Where the machine is reached.",
            {
                "ip": string("Its address."),
                "hostname": string("Its name, where it has no fixed address."),
                "ipMode": string("How a load balancer delivers: VIP or Proxy."),
                "ports": array("The ports of a load balancer.", _PORT),
            },
        )
    },
    columns=(Column("IP", ".status.ingress.ip"), Column("Hostname", ".status.ingress.hostname")),
    rules=[immutable("userData")],
)
