"""StatefulSet: as a Deployment; and its volume claim templates can't be changed once it exists."""

from agent.managed_resource.merge import deployment
from agent.managed_resource.merge.options import MergeOptions, at, with_value
from kube.objects import Object, metadata

_CLAIMS = ("spec", "volumeClaimTemplates")


def merge(result: Object, live: Object, options: MergeOptions) -> Object:
    if metadata(live).get("creationTimestamp"):
        result = with_value(result, _CLAIMS, at(live, *_CLAIMS))
    return deployment.merge(result, live, options)
