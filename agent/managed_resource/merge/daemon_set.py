"""DaemonSet: the rules of its pod template alone."""

from agent.managed_resource.merge import pod_template
from agent.managed_resource.merge.options import MergeOptions
from kube.objects import Object


def merge(result: Object, live: Object, options: MergeOptions) -> Object:
    return pod_template.merge(result, live, options, path=("spec", "template"))
