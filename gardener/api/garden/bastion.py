"""Bastion: a machine through which the nodes of a Shoot are reached by SSH for a while."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import BASTIONS
from gardener.api.garden.common import DNS_LABEL, OBSERVED_GENERATION, conditions
from gardener.api.schema import array, immutable, name, string, strings, struct, time

BASTION = Definition(
    resource=BASTIONS,
    description="A machine with access to the nodes of a Shoot by SSH. It is removed an hour after its last"
    " heartbeat: annotate it with `gardener.cloud/operation=keepalive` to extend that.",
    name=DNS_LABEL,
    fields={
        "spec*": struct(
            "Shoot, public key and allowed sources.",
            {
                "shootRef*": struct(
                    "The Shoot, in the same namespace. Immutable.", {"name*": name("Name of the Shoot.")}
                ),
                "sshPublicKey*": string(
                    "Public key of the user, as a line of OpenSSH's authorized_keys. Immutable.",
                    at_least=1,
                    at_most=16384,
                ),
                "ingress*": array(
                    "Sources of allowed connections.",
                    struct(
                        "A range of addresses.",
                        {
                            "ipBlock*": struct(
                                "The addresses that may connect by SSH.",
                                {
                                    "cidr*": string(
                                        "The addresses as a CIDR, such as 203.0.113.0/24.", at_least=1, at_most=64
                                    ),
                                    "except": strings("Addresses among them that are not let in; CIDRs.", at_most=64),
                                },
                            )
                        },
                    ),
                    at_least=1,
                    at_most=256,
                ),
                "seedName": string("Seed of the Shoot. The webhooks write it.", at_most=253),
                "providerType": string("Type of the Shoot's infrastructure. The webhooks write it.", at_most=63),
            },
            rules=[immutable("shootRef"), immutable("sshPublicKey")],
        ),
        "status": struct(
            "State that the controllers report.",
            {
                "ingress": struct(
                    "Address of the machine.",
                    {"ip": string("IP address."), "hostname": string("Host name, if there is no fixed IP address.")},
                ),
                "conditions": conditions("Conditions of the machine: BastionReady."),
                "lastHeartbeatTimestamp": time("The last heartbeat. Cannot be in the future."),
                "expirationTimestamp": time("Time at which the machine is removed: an hour after the last heartbeat."),
                "observedGeneration": OBSERVED_GENERATION,
            },
        ),
    },
    has_operation=True,
    selectable=("spec.seedName", "spec.shootRef.name"),
    columns=(
        Column("Shoot", ".spec.shootRef.name"),
        Column("Seed", ".spec.seedName"),
        Column("IP", ".status.ingress.ip"),
        Column("Heartbeat", ".status.lastHeartbeatTimestamp", "date"),
        Column("Expires", ".status.expirationTimestamp", "date"),
        AGE,
    ),
)
