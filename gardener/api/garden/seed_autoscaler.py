"""SeedAutoscaler: sets the replicas of a ManagedSeedSet by how full its Seeds are."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import MANAGED_SEED_SETS, SEED_AUTOSCALERS
from gardener.api.garden.common import OBSERVED_GENERATION, conditions
from gardener.api.schema import (
    Schema,
    array,
    boolean,
    immutable,
    integer,
    name,
    quantity,
    rule,
    string,
    struct,
    time,
)

_MOST_METRICS = 10
_LONGEST = 7 * 24 * 3600
"""Maximum of any delay, in seconds."""

_TARGET = struct(
    "The value that is aimed at.",
    {
        "type*": string(
            "Utilization: share of what can be allocated; percent. AverageValue: amount for each Seed.",
            enum=["Utilization", "AverageValue"],
        ),
        "averageUtilization": integer(
            "Target of type Utilization, in percent of the capacity.", at_least=1, at_most=100
        ),
        "averageValue": quantity("Target of type AverageValue: the amount."),
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
        "type*": string("Type of the metric: Resource."),
        "resource*": struct(
            "Measured resource of the Seeds.",
            {
                "name*": string("Name of the resource."),
                "current*": struct(
                    "The value that is aimed at.",
                    {
                        "averageUtilization": integer("Share of what can be allocated; percent.", at_least=0),
                        "averageValue": quantity("Amount for each Seed."),
                        "total": quantity("Amount on all Seeds of the set, with what waits for them."),
                        "allocatable": quantity("Amount that there is room for, with Seeds that are being made."),
                    },
                ),
            },
        ),
    },
)

_DEFAULT_METRIC = {
    "type": "Resource",
    "resource": {"name": "shoots", "target": {"type": "Utilization", "averageUtilization": 80}},
}


def _direction(what: str, *, window: int, step: int, cooldown: int, **more: Schema) -> Schema:
    return struct(
        f"Rules by which Seeds are {what}.",
        {
            "stabilizationWindowSeconds": integer(
                f"Seconds for which all measurements must agree before Seeds are {what}. Default: {window}.",
                default=window,
                at_least=0,
                at_most=_LONGEST,
            ),
            "maxStep": integer(f"Number of Seeds that are {what} at once. Default: {step}.", default=step, at_least=1),
            "cooldownSeconds": integer(
                f"Seconds after the last change of the number of Seeds in which none are {what}. Default: {cooldown}.",
                default=cooldown,
                at_least=0,
                at_most=_LONGEST,
            ),
            **more,
        },
        default={},
    )


_BEHAVIOR = struct(
    "Speed with which the set follows the metrics.",
    {
        "scaleOut": _direction("added", window=0, step=2, cooldown=0),
        "scaleIn": _direction(
            "removed",
            window=3600,
            step=1,
            cooldown=1800,
            disabled=boolean("Never remove a Seed. Default: false.", default=False),
        ),
        "tolerancePercent": integer(
            "Tolerated deviation of a metric from its target; percent. Default: 10.",
            default=10,
            at_least=0,
            at_most=50,
        ),
        "pendingShootGracePeriodSeconds": integer(
            "Seconds after which a Shoot without a Seed counts as pending. Default: 60.",
            default=60,
            at_least=0,
            at_most=_LONGEST,
        ),
    },
    default={},
)

SEED_AUTOSCALER = Definition(
    resource=SEED_AUTOSCALERS,
    description="Adds Seeds to a ManagedSeedSet, or removes some, so that there is room for Shoots.",
    fields={
        "spec*": struct(
            "Target and metrics of scaling.",
            {
                "scaleTargetRef*": struct(
                    "Target of scaling: a ManagedSeedSet in the same namespace. Immutable.",
                    {
                        "apiVersion*": string(
                            f"Group and version of the target: {MANAGED_SEED_SETS.api_version}.",
                            enum=[MANAGED_SEED_SETS.api_version],
                        ),
                        "kind*": string("Kind of the target: ManagedSeedSet.", enum=["ManagedSeedSet"]),
                        "name*": name("Name of the target."),
                    },
                ),
                "minReplicas": integer("Replicas at least. Default: 1.", default=1, at_least=1),
                "maxReplicas*": integer("Number of replicas of the set at most.", at_least=1),
                "metrics": array(
                    "Metrics, each resource once. The metric that requires the most replicas wins."
                    " Default: `shoots`, with a utilization of 80 percent.",
                    struct(
                        "A metric.",
                        {
                            "type*": string("Resource: something that Seeds have a capacity of.", enum=["Resource"]),
                            "resource*": struct(
                                "Measured resource of the Seeds.",
                                {
                                    "name*": string(
                                        "Name of the resource in the status of Seeds, such as `shoots`.",
                                        at_least=1,
                                        at_most=253,
                                    ),
                                    "target*": _TARGET,
                                },
                            ),
                        },
                    ),
                    at_least=1,
                    at_most=_MOST_METRICS,
                    default=[_DEFAULT_METRIC],
                ),
                "includePendingShoots": boolean(
                    "Make room for Shoots that wait because no Seed takes them, if a Seed of this set would."
                    " Default: true.",
                    default=True,
                ),
                "minFreeShoots": integer(
                    "Minimum number of Shoots for which there is free capacity at any time. Default: 0.",
                    default=0,
                    at_least=0,
                ),
                "behavior": _BEHAVIOR,
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
            "State that the controllers report.",
            {
                "observedGeneration": OBSERVED_GENERATION,
                "currentReplicas": integer("Replicas that there are.", at_least=0),
                "desiredReplicas": integer("Desired number of replicas.", at_least=0),
                "lastScaleTime": time("Time of the last change of the number of replicas."),
                "currentMetrics": array("Last measured values.", _CURRENT, at_most=_MOST_METRICS),
                "pendingShoots": integer("Shoots that wait for a Seed of this set.", at_least=0),
                "conditions": conditions("Conditions of the autoscaler."),
            },
        ),
    },
    columns=(
        Column("Reference", ".spec.scaleTargetRef.name"),
        Column("Min", ".spec.minReplicas", "integer"),
        Column("Max", ".spec.maxReplicas", "integer"),
        Column("Replicas", ".status.currentReplicas", "integer"),
        Column("Desired", ".status.desiredReplicas", "integer"),
        AGE,
    ),
)
