"""WorkloadIdentity: credentials that are never stored, but issued as tokens."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import WORKLOAD_IDENTITIES
from gardener.api.garden.common import provider_type
from gardener.api.schema import array, immutable, raw, rule, string, struct

WORKLOAD_IDENTITY = Definition(
    resource=WORKLOAD_IDENTITIES,
    description="An identity that another system trusts: gardenlet and extensions get tokens for it that are valid"
    " for a short time, instead of a Secret.",
    fields={
        "spec*": struct(
            "Target system that trusts the identity.",
            {
                "audiences*": array(
                    "Audiences of the tokens; what the other system demands. Each stands here once.",
                    {"type": "string", "minLength": 1, "maxLength": 1024},
                    at_least=1,
                    at_most=64,
                    unique=True,
                ),
                "targetSystem*": struct(
                    "The system that trusts the tokens, such as that of an infrastructure.",
                    {
                        "type*": provider_type(
                            "Type of the target system: that of an infrastructure. Exactly one. Immutable."
                        ),
                        "providerConfig": raw("Settings that the provider's extension knows."),
                    },
                    rules=[
                        immutable("type"),
                        rule("!self.type.contains(',')", "multiple providers specified", field="type"),
                    ],
                ),
            },
        ),
        "status": struct(
            "State that the controller reports.",
            {
                "sub": string(
                    "Subject of the tokens: `gardener.cloud:workloadidentity:<namespace>:<name>:<uid>`.", at_most=255
                )
            },
        ),
    },
    columns=(
        Column("Sub", ".status.sub"),
        Column("Type", ".spec.targetSystem.type"),
        Column("Audiences", ".spec.audiences", priority=1),
        AGE,
    ),
)
