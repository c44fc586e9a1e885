"""Pod templates: `kubectl rollout restart` must not be undone, and resources may be an autoscaler's."""

from typing import Any

from agent.managed_resource import keys
from agent.managed_resource.merge.options import MergeOptions, at, mapping_at, mappings_at, with_value
from kube.objects import Object

_SCALED = ("cpu", "memory")


def merge(result: Object, live: Object, options: MergeOptions, *, path: tuple[str, ...]) -> Object:
    """Merges the pod template at `path`."""
    restarted = at(live, *path, "metadata", "annotations", keys.RESTARTED_AT)
    if restarted is not None:
        result = with_value(result, (*path, "metadata", "annotations", keys.RESTARTED_AT), restarted)
    if options.preserve_resources:
        containers = at(result, *path, "spec", "containers")
        if isinstance(containers, list):
            present = {_name(item): item for item in reversed(mappings_at(live, *path, "spec", "containers"))}
            merged = [_with_live_resources(item, present) for item in containers]
            result = with_value(result, (*path, "spec", "containers"), merged)
    return result


def _name(container: Any) -> str:
    name = container.get("name") if isinstance(container, dict) else None
    return name if isinstance(name, str) else ""


def _with_live_resources(container: Any, present: dict[str, Object]) -> Any:
    name = _name(container)
    if not name or name not in present:
        return container
    live = present[name]
    for kind in ("requests", "limits"):
        scaled = {unit: value for unit, value in mapping_at(live, "resources", kind).items() if unit in _SCALED}
        for unit, value in scaled.items():
            container = with_value(container, ("resources", kind, unit), value)
    return container
