"""SelfHostedShootExposure: exposure of the API server of a Shoot that runs its own control plane.

Seeds do not serve it yet.
"""

from gardener.api.definition import Column
from gardener.api.extensions import SELF_HOSTED_SHOOT_EXPOSURES
from gardener.api.extensions.common import definition
from gardener.api.schema import array, integer, string, struct

_ADDRESS = struct("An address.", {"type*": string("Its type, such as InternalIP."), "address*": string("The address.")})

SELF_HOSTED_SHOOT_EXPOSURE = definition(
    SELF_HOSTED_SHOOT_EXPOSURES,
    "A way from outside to the API server of a Shoot that runs its own control plane.",
    spec={
        "credentialsRef": struct(
            "Secret with the credentials for the infrastructure.",
            {
                "kind": string("Its kind."),
                "namespace": string("Its namespace."),
                "name": string("Its name."),
                "uid": string("Its uid, where this very object is meant."),
                "apiVersion": string("Group and version of its kind: v1."),
                "resourceVersion": string("Its version, where one is meant."),
                "fieldPath": string("The part of it that is meant."),
            },
        ),
        "port*": integer("Port of the API server.", at_least=1, at_most=65535),
        "endpoints*": array(
            "Nodes that the API server runs on.",
            struct(
                "A node.",
                {"nodeName*": string("Its name.", at_least=1), "addresses": array("Its addresses.", _ADDRESS)},
            ),
            at_least=1,
        ),
    },
    columns=(Column("Port", ".spec.port", "integer"),),
)
