"""CronJob: the rules of its pod template, for the versions in which its place is known."""

from agent.managed_resource.merge import pod_template
from agent.managed_resource.merge.options import MergeError, MergeOptions
from kube.objects import Object

_VERSIONS = ("batch/v1", "batch/v1beta1")


def merge(result: Object, live: Object, options: MergeOptions) -> Object:
    if result["apiVersion"] not in _VERSIONS:
        raise MergeError(f"cannot merge objects with gvk: {result['apiVersion']}, Kind=CronJob")
    return pod_template.merge(result, live, options, path=("spec", "jobTemplate", "spec", "template"))
