"""SelfHostedShootExposure: exposure of the API server of a Shoot that runs its own control plane."""

from gardener.api.definition import Column
from gardener.api.extensions import SELF_HOSTED_SHOOT_EXPOSURES
from gardener.api.extensions.common import definition, load_balancer_address
from gardener.api.schema import array, integer, string, struct

_ADDRESS = struct(
    "An address.", {"type*": string("Type of the address, such as InternalIP."), "address*": string("The address.")}
)

SELF_HOSTED_SHOOT_EXPOSURE = definition(
    SELF_HOSTED_SHOOT_EXPOSURES,
    "A way from outside to the API server of a Shoot that runs its own control plane.",
    spec={
        "credentialsRef": struct(
            "Secret with the credentials for the infrastructure.",
            {
                "kind": string("Kind of the object."),
                "namespace": string("Namespace of the object."),
                "name": string("Name of the object."),
                "uid": string("UID of the object, to select exactly this one."),
                "apiVersion": string("Group and version of its kind: v1."),
                "resourceVersion": string("Resource version of the object, to select exactly this one."),
                "fieldPath": string("The part of it that is meant."),
            },
        ),
        "port*": integer("Port of the API server.", at_least=1, at_most=65535),
        "endpoints*": array(
            "Nodes that the API server runs on.",
            struct(
                "A node.",
                {
                    "nodeName*": string("Name of the node.", at_least=1),
                    "addresses": array("Addresses of the node.", _ADDRESS),
                },
            ),
            at_least=1,
        ),
    },
    status={"ingress": array("Addresses of the API server.", load_balancer_address("An address."))},
    columns=(Column("Port", ".spec.port", "integer"),),
)
