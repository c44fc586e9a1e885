"""Pod: nearly all of its spec is immutable, and much of it is filled in by admission and by the scheduler.

So everything that the manifest omits stays: fields, and items of lists that are identified by a name (volumes and their
mounts, containers, variables). The order is that of the live lists; new items come last.
"""

from typing import Any

from kube.merge.options import MergeOptions
from kube.objects import Object
from kube.packing import digest
from kube.paths import at, with_value

_ITEM_KEY = {"volumeMounts": "mountPath", "volumeDevices": "devicePath"}
_NAMED = ("containers", "initContainers", "ephemeralContainers", "volumes", "env")


def merge(result: Object, live: Object, _options: MergeOptions) -> Object:
    wanted, present = at(result, "spec"), at(live, "spec")
    if not isinstance(wanted, dict) or not isinstance(present, dict):
        return result
    return with_value(result, ("spec",), _overlaid(present, wanted))


def _overlaid(live: Object, wanted: Object) -> Object:
    return {**live, **{name: _value(name, live.get(name), value) for name, value in wanted.items()}}


def _value(name: str, live: Any, wanted: Any) -> Any:
    if not isinstance(live, list) or not isinstance(wanted, list):
        return wanted
    if name == "tolerations":  # they can be added, but not taken away
        known = {digest(item) for item in live}
        return [*live, *(item for item in wanted if digest(item) not in known)]
    key = _ITEM_KEY.get(name, "name" if name in _NAMED else None)
    if key is None or not all(isinstance(item, dict) and isinstance(item.get(key), str) for item in [*live, *wanted]):
        return wanted
    by_key = {item.get(key): item for item in wanted}
    known = {item.get(key) for item in live}
    kept = [_item(name, item, by_key.get(item.get(key))) for item in live]
    return [*kept, *(item for item in wanted if item.get(key) not in known)]


def _item(name: str, live: Object, wanted: Object | None) -> Object:
    if wanted is None:
        return live
    return _overlaid(live, wanted) if name.endswith("ontainers") else wanted
