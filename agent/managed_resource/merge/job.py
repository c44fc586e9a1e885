"""Job: selector and some labels of the pod template come from the API server, and can't be changed."""

from agent.managed_resource.merge import pod_template
from agent.managed_resource.merge.options import MergeOptions, at, mapping_at, with_value
from kube.objects import Object

_TEMPLATE = ("spec", "template")
_LABELS = (*_TEMPLATE, "metadata", "labels")


def merge(result: Object, live: Object, options: MergeOptions) -> Object:
    result = with_value(result, ("spec", "selector"), at(live, "spec", "selector"))
    labels = {**mapping_at(live, *_LABELS), **mapping_at(result, *_LABELS)}
    if labels:
        result = with_value(result, _LABELS, labels)
    return pod_template.merge(result, live, options, path=_TEMPLATE)
