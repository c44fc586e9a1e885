"""ServiceAccount: who adds secrets to it is not undone; the manifest's lists count on creation only."""

from agent.managed_resource.merge.options import MergeOptions, with_value
from kube.objects import Object


def merge(result: Object, live: Object, _options: MergeOptions) -> Object:
    for name in ("secrets", "imagePullSecrets"):
        result = with_value(result, (name,), live.get(name))
    return result
