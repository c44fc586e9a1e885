"""Cluster: data about the Shoot of a namespace, for extensions. Only gardenlet writes it."""

from gardener.api.definition import Definition
from gardener.api.extensions import CLUSTERS
from gardener.api.schema import raw, struct

CLUSTER = Definition(
    resource=CLUSTERS,
    description="The Shoot of the namespace of this name, with its CloudProfile and its Seed, for extensions.",
    fields={
        "spec*": struct(
            "Copies of the objects of the garden.",
            {
                "cloudProfile*": raw("The CloudProfile of the Shoot."),
                "seed*": raw("The Seed of the Shoot."),
                "shoot*": raw("The Shoot, as it was when its last operation began or ended."),
            },
        )
    },
)
