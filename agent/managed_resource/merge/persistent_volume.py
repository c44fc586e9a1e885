"""PersistentVolume: the claim that it is bound to stays, or its data would be released."""

from agent.managed_resource.merge.options import MergeOptions, kept_if_omitted, mapping_at, with_value
from kube.objects import Object

_CLAIM = ("spec", "claimRef")


def merge(result: Object, live: Object, _options: MergeOptions) -> Object:
    result = kept_if_omitted(result, live, *_CLAIM)
    wanted, present = mapping_at(result, *_CLAIM), mapping_at(live, *_CLAIM)
    if wanted and all(wanted.get(name) == present.get(name) for name in ("namespace", "name")):
        # A manifest that names its claim does not know the uid to which it was bound.
        result = with_value(result, _CLAIM, {**present, **wanted})
    return result
