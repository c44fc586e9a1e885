"""ShootState: data that a Shoot keeps when it moves to another Seed."""

from gardener.api.definition import AGE, Definition
from gardener.api.garden import SHOOT_STATES
from gardener.api.garden.common import DNS_LABEL
from gardener.api.schema import array, but, raw, string, string_map, struct

_EXTENSION = struct(
    "State of an extension object.",
    {
        "kind*": string("Kind of the extension object.", at_least=1),
        "name": string("Name of the extension object."),
        "purpose": string("Purpose of the extension object, if it has one.", at_least=1),
        "state": raw("State that the extension needs to continue."),
        "resources": array(
            "Objects that the state refers to; their data is in `resources` of the spec.",
            struct(
                "An object.",
                {
                    "name*": string("Name under which it is known."),
                    "resourceRef*": struct(
                        "Object that the state of the extension refers to.",
                        {
                            "apiVersion": string("Group and version of its kind."),
                            "kind*": string("Kind of the object."),
                            "name*": string("Name of the object."),
                        },
                    ),
                },
            ),
        ),
    },
)

SHOOT_STATE = Definition(
    resource=SHOOT_STATES,
    name=DNS_LABEL,
    description="State of a Shoot that its next Seed needs, under the name of the Shoot. It holds keys: the API"
    " server must be configured to encrypt this resource in etcd. It can be large.",
    fields={
        "spec": struct(
            "Data that a control plane needs to be restored on another Seed.",
            {
                "gardener": array(
                    "Data that gardenlet needs: certificate authorities and other secrets.",
                    struct(
                        "An entry.",
                        {
                            "name*": string("Name of the data.", at_least=1),
                            "type*": string("Type of the data, such as `secret`.", at_least=1),
                            "data*": but(
                                raw("The content, whose shape depends on the type; null: none."), nullable=True
                            ),
                            "labels": string_map("Labels of the object that is made of it."),
                        },
                    ),
                ),
                "extensions": array("States of extension objects.", _EXTENSION),
                "resources": array(
                    "Objects that states of extensions refer to.",
                    struct(
                        "An object.",
                        {
                            "apiVersion": string("Group and version of its kind."),
                            "kind*": string("Kind of the object.", at_least=1),
                            "name*": string("Name of the object.", at_least=1),
                            "data*": raw("The object, or what is needed of it."),
                        },
                    ),
                ),
            },
        )
    },
    columns=(AGE,),
)
