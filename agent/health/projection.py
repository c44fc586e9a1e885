"""The part of an object that is needed to judge it, so that a cache need not hold the rest.

A pod template or the schemas of a CustomResourceDefinition take most of the space and are never read here.
"""

from agent.health import keys
from agent.health.checks.registry import rule_of
from kube.objects import Object, annotations, metadata

_METADATA = ("name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp")
_ANNOTATIONS = (keys.ORIGIN, keys.SKIP_HEALTH_CHECK)
_CONDITION = ("type", "status", "reason", "message", "observedGeneration")


def projection(group: str, kind: str, obj: Object) -> Object:
    """A smaller object with which all rules come to the same result; a malformed field stays as it is."""
    kept: Object = _only(obj, ("apiVersion", "kind"))
    kept["metadata"] = _only(metadata(obj), _METADATA)
    kept_annotations = _only(annotations(obj), _ANNOTATIONS)
    if kept_annotations:
        kept["metadata"]["annotations"] = kept_annotations
    rule = rule_of(group, kind)
    if rule is None:
        return kept
    for path in rule.reads:
        _keep(obj, kept, path)
    if rule.conditions:
        _keep_conditions(obj, kept, rule.conditions)
    return kept


def _only(fields: Object, names: tuple[str, ...]) -> Object:
    return {name: fields[name] for name in names if name in fields}


def _keep(source: Object, kept: Object, path: str) -> None:
    *parents, last = path.split(".")
    for name in parents:
        if name not in source:
            return
        child = source[name]
        if not isinstance(child, dict):
            kept[name] = child
            return
        source, kept = child, kept.setdefault(name, {})
    if last in source:
        kept[last] = source[last]


def _keep_conditions(source: Object, kept: Object, types: tuple[str, ...]) -> None:
    _keep(source, kept, "status.conditions")
    status = kept.get("status")
    found = status.get("conditions") if isinstance(status, dict) else None
    if isinstance(status, dict) and isinstance(found, list):
        status["conditions"] = [
            _only(entry, _CONDITION) if isinstance(entry, dict) else entry
            for entry in found
            if not isinstance(entry, dict) or entry.get("type") in types
        ]
