"""Deployment: the replicas may be an autoscaler's."""

from agent.managed_resource.merge import pod_template
from agent.managed_resource.merge.options import MergeOptions, at, with_value
from kube.objects import Object


def merge(result: Object, live: Object, options: MergeOptions) -> Object:
    return pod_template.merge(with_replicas(result, live, options), live, options, path=("spec", "template"))


def with_replicas(result: Object, live: Object, options: MergeOptions) -> Object:
    """The result with the live number of replicas if it has none, or is told to preserve it."""
    if options.preserve_replicas or at(result, "spec", "replicas") is None:
        return with_value(result, ("spec", "replicas"), at(live, "spec", "replicas"))
    return result
