"""PersistentVolumeClaim: what binding and admission filled in (`volumeName`, the storage class) can't be taken away."""

from agent.managed_resource.merge.options import MergeOptions, mapping_at, with_value
from kube.objects import Object

_CHANGEABLE = frozenset({"resources"})


def merge(result: Object, live: Object, _options: MergeOptions) -> Object:
    kept = {name: value for name, value in mapping_at(live, "spec").items() if name not in _CHANGEABLE}
    if not kept:
        return result
    return with_value(result, ("spec",), {**kept, **mapping_at(result, "spec")})
