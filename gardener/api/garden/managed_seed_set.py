"""ManagedSeedSet: a number of equal ManagedSeeds, each with its Shoot."""

from gardener.api.definition import AGE, Column, Definition, Scale
from gardener.api.garden import MANAGED_SEED_SETS
from gardener.api.garden.common import (
    DNS_LABEL,
    OBSERVED_GENERATION,
    conditions,
    label_selector,
    template_metadata,
)
from gardener.api.garden.managed_seed import RULES as MANAGED_SEED_RULES
from gardener.api.garden.managed_seed import SPEC as MANAGED_SEED_SPEC
from gardener.api.garden.shoot.spec import template_spec
from gardener.api.schema import (
    Schema,
    forbidden,
    immutable,
    integer,
    not_decreased,
    number_or_percentage,
    raw,
    rule,
    string,
    struct,
    time,
    with_fields,
    without_defaults,
)

_MANAGED_SEED_SPEC = {
    **without_defaults(
        with_fields(MANAGED_SEED_SPEC, {"shoot": raw("Not to be given: the Shoots are those of this set.")})
    ),
    "description": "Spec of the ManagedSeeds.",
    "x-kubernetes-validations": [forbidden("shoot", "shoot is forbidden"), *MANAGED_SEED_RULES],
}

_REASONS = (
    *("ShootReconciling", "ShootDeleting", "ShootReconcileFailed", "ShootDeleteFailed", "ManagedSeedPreparing"),
    *("ManagedSeedDeleting", "SeedNotReady", "ShootNotHealthy"),
)

_SPEC = struct(
    "The replicas, and the templates that they are made from.",
    {
        "replicas": integer("Desired number of ManagedSeeds. Default: 1.", default=1, at_least=0),
        "selector*": label_selector(
            "Labels by which the set knows its Shoots and ManagedSeeds; all templates have them. Not empty. Immutable."
        ),
        "template*": struct(
            "Template of the ManagedSeeds.",
            {"metadata": template_metadata("Metadata of the ManagedSeeds."), "spec": _MANAGED_SEED_SPEC},
        ),
        "shootTemplate*": struct(
            "Template of the Shoots.",
            {"metadata": template_metadata("Metadata of the Shoots."), "spec": template_spec()},
        ),
        "updateStrategy": struct(
            "Strategy for rolling out a change of the templates. Default: RollingUpdate.",
            {
                "type": string(
                    "RollingUpdate: one after the other, from the highest number down. Default: RollingUpdate.",
                    enum=["RollingUpdate"],
                    default="RollingUpdate",
                ),
                "rollingUpdate": struct(
                    "Settings of a roll-out that replaces one replica after the other.",
                    {
                        "partition": integer(
                            "Replicas with a lower number stay as they are. Default: 0.", default=0, at_least=0
                        ),
                        "maxUnhealthyShoots": number_or_percentage(
                            "The next replica is updated when so many Shoots on each updated Seed are not healthy, at"
                            " most: a number, or a percentage of them, rounded down. Default: all may be."
                        ),
                    },
                ),
            },
            default={"type": "RollingUpdate"},
        ),
        "revisionHistoryLimit": integer(
            "Old revisions of the templates that are kept. Immutable. Default: 10.", default=10, at_least=0
        ),
    },
    rules=[
        immutable("selector"),
        immutable("revisionHistoryLimit"),
        rule(
            "(has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0)"
            " || (has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0)",
            "empty selector is invalid for ManagedSeedSet",
            field="selector",
        ),
    ],
)

_COUNTS = ("readyReplicas", "currentReplicas", "updatedReplicas")


def _count(description: str) -> Schema:
    return integer(description, at_least=0)


_STATUS = struct(
    "State that the controllers report.",
    {
        "observedGeneration": OBSERVED_GENERATION,
        "replicas": _count("Replicas that there are."),
        "readyReplicas": _count("Replicas whose Seed is ready."),
        "currentReplicas": _count("Replicas made from `currentRevision`."),
        "updatedReplicas": _count("Replicas made from `updateRevision`."),
        "nextReplicaNumber": _count("Number of the replica that is made next. It never falls."),
        "collisionCount": _count("Number of collisions of names of new revisions. It never decreases."),
        "currentRevision": string("Revision of the templates from which replicas were made before the update."),
        "updateRevision": string("Newest revision of the templates."),
        "conditions": conditions("Conditions of the set."),
        "selector": string("The selector as text, for the subresource `scale`."),
        "pendingReplica": struct(
            "The replica that is being made, changed or removed; the others wait for it.",
            {
                "name*": string("Name of the replica: that of the set, and its number.", at_most=253),
                "reason*": string("Reason for which the replica is pending.", enum=_REASONS),
                "since*": time("Since when it waits."),
                "retries": integer("Number of retries of a failed operation.", at_least=0),
            },
        ),
    },
    rules=[
        not_decreased("nextReplicaNumber", "cannot be decremented"),
        not_decreased("collisionCount", "cannot be decremented"),
        *(
            rule(
                f"!has(self.{count}) || self.{count} <= (has(self.replicas) ? self.replicas : 0)",
                "cannot be greater than status.replicas",
                field=count,
            )
            for count in _COUNTS
        ),
    ],
)

MANAGED_SEED_SET = Definition(
    resource=MANAGED_SEED_SETS,
    description="Keeps a number of equal Seeds: for each there is a Shoot and a ManagedSeed. In the namespace"
    " `garden` only.",
    name=DNS_LABEL,
    fields={"spec*": _SPEC, "status": _STATUS},
    rules=[
        rule(
            "!has(self.status) || !has(self.status.pendingReplica)"
            " || (self.status.pendingReplica.name.startsWith(self.metadata.name + '-')"
            " && self.status.pendingReplica.name.substring(size(self.metadata.name) + 1).matches('^[0-9]+$'))",
            "must be the name of the set, a hyphen, and a number",
            field="status.pendingReplica.name",
        )
    ],
    scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
    has_operation=True,
    columns=(
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Desired", ".spec.replicas", "integer"),
        Column("Pending", ".status.pendingReplica.name"),
        Column("Reason", ".status.pendingReplica.reason"),
        AGE,
    ),
)
