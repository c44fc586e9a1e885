"""SeedAutoscaler: sets the replicas of a ManagedSeedSet by how full its Seeds are."""

from gardener.garden.definitions import AGE, Column, Definition
from gardener.garden.kinds.common import OBSERVED_GENERATION, conditions
from gardener.garden.resources import MANAGED_SEED_SETS, SEED_AUTOSCALERS
from gardener.garden.schema import array, immutable, integer, name, quantity, rule, string, struct, time

_TARGET = struct(
    "The value that is aimed at.",
    {
        "type*": string(
            "Utilization: share of what can be allocated; percent. AverageValue: amount for each Seed.",
            enum=["Utilization", "AverageValue"],
        ),
        "averageUtilization": integer("For Utilization: percent.", at_least=1, at_most=100),
        "averageValue": quantity("For AverageValue: the amount."),
    },
    rules=[
        rule(
            "self.type == 'Utilization' ? has(self.averageUtilization) && !has(self.averageValue)"
            " : has(self.averageValue) && !has(self.averageUtilization)",
            "must have the field of its type, averageUtilization or averageValue, and not the other",
        )
    ],
)

_CURRENT = struct(
    "A value that was found.",
    {
        "type*": string("Resource."),
        "resource*": struct(
            "The resource.",
            {
                "name*": string("Its name."),
                "current*": struct(
                    "The value.",
                    {
                        "averageUtilization": integer("Share of what can be allocated; percent.", at_least=0),
                        "averageValue": quantity("Amount for each Seed."),
                    },
                ),
            },
        ),
    },
)

SEED_AUTOSCALER = Definition(
    resource=SEED_AUTOSCALERS,
    description="Adds Seeds to a ManagedSeedSet, or removes some, so that there is room for Shoots.",
    fields={
        "spec*": struct(
            "What is scaled, and by what.",
            {
                "scaleTargetRef*": struct(
                    "What is scaled: a ManagedSeedSet in the same namespace. Immutable.",
                    {
                        "apiVersion*": string(
                            f"{MANAGED_SEED_SETS.api_version}.", enum=[MANAGED_SEED_SETS.api_version]
                        ),
                        "kind*": string("ManagedSeedSet.", enum=["ManagedSeedSet"]),
                        "name*": name("Its name."),
                    },
                ),
                "minReplicas": integer("Replicas at least. Default: 1.", default=1, at_least=0),
                "maxReplicas*": integer("Replicas at most.", at_least=0),
                "metrics*": array(
                    "What is looked at. The metric that asks for the most replicas wins.",
                    struct(
                        "A metric.",
                        {
                            "type*": string("Resource: something that Seeds have a capacity of.", enum=["Resource"]),
                            "resource*": struct(
                                "The resource.",
                                {
                                    "name*": string(
                                        "Its name in the status of Seeds, such as `shoots`.", at_least=1, at_most=253
                                    ),
                                    "target*": _TARGET,
                                },
                            ),
                        },
                    ),
                    at_least=1,
                    at_most=32,
                ),
            },
            rules=[
                immutable("scaleTargetRef"),
                rule(
                    "!has(self.minReplicas) || self.maxReplicas >= self.minReplicas",
                    "must not be less than minReplicas",
                    field="maxReplicas",
                ),
            ],
        ),
        "status": struct(
            "What the controllers report.",
            {
                "observedGeneration": OBSERVED_GENERATION,
                "currentReplicas": integer("Replicas that there are.", at_least=0),
                "desiredReplicas": integer("Replicas that there are to be.", at_least=0),
                "lastScaleTime": time("When the number of replicas was changed the last time."),
                "currentMetrics": array("What was found the last time.", _CURRENT, at_most=32),
                "conditions": conditions("How the autoscaler is."),
            },
        ),
    },
    columns=(
        Column("Set", ".spec.scaleTargetRef.name"),
        Column("Min", ".spec.minReplicas", "integer"),
        Column("Max", ".spec.maxReplicas", "integer"),
        Column("Replicas", ".status.currentReplicas", "integer"),
        AGE,
    ),
)
