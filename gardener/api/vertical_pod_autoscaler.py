"""The kinds of the vertical Pod autoscaler.

The autoscaler validates their fields: here they are open. `v1beta2` differs from `v1` in its name only.
"""

from collections.abc import Sequence

from gardener import keys
from gardener.api.definition import AGE, Column, Definition, OtherVersion, open_fields
from gardener.api.kinds import VERTICAL_POD_AUTOSCALER_CHECKPOINTS, VERTICAL_POD_AUTOSCALERS
from kube.resources import Resource

_ANNOTATIONS = {
    # API servers refuse kinds of a group k8s.io without it.
    "api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797",
    keys.KEEP_OBJECT: "true",
}


def _definition(resource: Resource, description: str, columns: Sequence[Column]) -> Definition:
    fields = open_fields("the autoscaler")
    return Definition(
        resource=resource,
        description=description,
        annotations=_ANNOTATIONS,
        fields=fields,
        columns=columns,
        others=[OtherVersion(name="v1beta2", fields=fields, description=description, columns=columns, same=True)],
    )


DEFINITIONS: tuple[Definition, ...] = (
    _definition(
        VERTICAL_POD_AUTOSCALERS,
        "Sets the requests of Pods by what they used.",
        (
            Column("Mode", ".spec.updatePolicy.updateMode"),
            Column("CPU", ".status.recommendation.containerRecommendations[0].target.cpu"),
            Column("Mem", ".status.recommendation.containerRecommendations[0].target.memory"),
            Column("Provided", '.status.conditions[?(@.type=="RecommendationProvided")].status'),
            AGE,
        ),
    ),
    _definition(VERTICAL_POD_AUTOSCALER_CHECKPOINTS, "Recommendations and history of a container's usage.", (AGE,)),
)
