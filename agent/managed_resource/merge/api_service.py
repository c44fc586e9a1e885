"""APIService: a certificate that somebody injected stays, unless the manifest has its own or wants none."""

from agent.managed_resource.merge.options import MergeOptions, at, with_value
from kube.objects import Object

_BUNDLE = ("spec", "caBundle")


def merge(result: Object, live: Object, _options: MergeOptions) -> Object:
    bundle = at(live, *_BUNDLE)
    if not bundle or at(result, *_BUNDLE) or at(result, "spec", "insecureSkipTLSVerify"):
        return result
    return with_value(result, _BUNDLE, bundle)
