"""CustomResourceDefinition: a certificate that somebody injected for its conversion webhook stays."""

from agent.managed_resource.merge.options import MergeOptions, at, with_value
from kube.objects import Object

_CLIENT = ("spec", "conversion", "webhook", "clientConfig")


def merge(result: Object, live: Object, _options: MergeOptions) -> Object:
    bundle = at(live, *_CLIENT, "caBundle")
    if not bundle or not isinstance(at(result, *_CLIENT), dict) or at(result, *_CLIENT, "caBundle"):
        return result
    return with_value(result, (*_CLIENT, "caBundle"), bundle)
