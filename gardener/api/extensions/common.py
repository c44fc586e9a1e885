"""Types that the extension resources share: common fields at the start of each spec and the end of each status."""

from collections.abc import Mapping, Sequence

from gardener import keys
from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden.common import LAST_ERROR, LAST_OPERATION, OBSERVED_GENERATION, conditions
from gardener.api.schema import (
    Rule,
    Schema,
    array,
    base64,
    immutable,
    integer,
    name,
    present,
    raw,
    rule,
    string,
    struct,
)
from kube.resources import Resource

PROTECTED = {keys.DELETION_PROTECTED: "true"}
"""Labels of definitions whose deletion has to be confirmed."""

TYPE_COLUMN = Column("Type", ".spec.type", description="Type, which selects the responsible extension.")
REGION_COLUMN = Column("Region", ".spec.region")
STATUS_COLUMN = Column("Status", ".status.lastOperation.state", description="State of the last operation.")


def definition(
    resource: Resource,
    description: str,
    *,
    spec: Mapping[str, Schema],
    status: Mapping[str, Schema] | None = None,
    columns: Sequence[Column] = (),
    rules: Sequence[Rule] = (),
) -> Definition:
    """Definition of an extension resource: the arguments extend what all these kinds share.

    Its rules apply to the spec, its columns are shown between type and state.
    """
    return Definition(
        resource=resource,
        description=description,
        labels=PROTECTED,
        fields={
            "spec*": struct(
                "Desired state of the object. Does not change while the object is being deleted.",
                {**SPEC, **spec},
                rules=[immutable("type"), _CLASS_STAYS, *rules],
            ),
            "status": struct("State that the extension reports.", {**(status or {}), **_STATUS}),
        },
        columns=(TYPE_COLUMN, *columns, STATUS_COLUMN, AGE),
    )


SPEC: Mapping[str, Schema] = {
    "type*": string("Type, which selects the responsible extension. Immutable.", at_least=1),
    "class": string(
        "Class of the responsible extension among those of the type: the one for Shoots (the default), "
        "for Seeds, or for the garden. Immutable.",
        enum=["shoot", "seed", "garden"],
    ),
    "providerConfig": raw("Settings that the extension knows."),
}
"""Fields at the start of each spec."""
_CLASS_STAYS = rule(
    f"!{present('class')} || !{present('class', 'oldSelf')} || self.class == oldSelf.class",
    "field is immutable",
    field="class",
)
"""The class is immutable once set; objects of former releases have none, and may get one."""

_RESOURCE_REFERENCE = struct(
    "An object that the state is about, under a name by which the state refers to it.",
    {
        "name*": string("The name in the state."),
        "resourceRef*": struct(
            "The object, in the same namespace.",
            {
                "apiVersion": string("Group and version of its kind."),
                "kind*": string("Kind of the object."),
                "name*": string("Name of the object."),
            },
        ),
    },
)
_STATUS: Mapping[str, Schema] = {
    "observedGeneration": OBSERVED_GENERATION,
    "lastOperation": LAST_OPERATION,
    "lastError": LAST_ERROR,
    "conditions": conditions("Conditions of the managed resources; extensions choose the types."),
    "providerStatus": raw("Data for other extension resources of the same type."),
    "state": raw("State that the extension needs to restore when the Shoot moves to another Seed."),
    "resources": array("Objects that move together with the state.", _RESOURCE_REFERENCE),
}


def secret_reference(description: str) -> Schema:
    return struct(
        description,
        {"name*": name("Name of the Secret."), "namespace": string("Namespace of the Secret.")},
    )


CREDENTIALS = secret_reference("Secret with the credentials for the infrastructure.")
INFRASTRUCTURE_STATUS = raw("`status.providerStatus` of the Infrastructure.")
SSH_PUBLIC_KEY = base64("Public key that is let in by SSH on the machines; base64.")


def region(what: str) -> Schema:
    return string(f"Region of {what}. Immutable.", at_least=1)


_PORT = struct(
    "A port of a load balancer.",
    {
        "port*": integer("Number of the port."),
        "protocol*": string("TCP, UDP or SCTP."),
        "error": string("Error of the port, in one word."),
    },
)


def load_balancer_address(description: str) -> Schema:
    """An address, as in the status of a Service of type LoadBalancer."""
    return struct(
        description,
        {
            "ip": string("IP address."),
            "hostname": string("Host name, if there is no fixed IP address."),
            "ipMode": string("Mode of the load balancer: VIP or Proxy."),
            "ports": array("The ports of a load balancer.", _PORT),
        },
    )
