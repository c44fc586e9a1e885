"""Replicas of autoscaled objects: the autoscaler's choice stays, within its bounds.

An object whose desired or current replicas are 0 is not autoscaled: it gets the desired replicas.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kube.objects import Key, Object, integer, key, spec, text
from kube.paths import at, mapping_at, with_value
from kube.resources import HORIZONTAL_POD_AUTOSCALERS

_REPLICAS = ("spec", "replicas")

Target = tuple[str, str, Key]
"""apiVersion, kind, and key of a scale target."""


@dataclass(frozen=True, slots=True)
class Bounds:
    least: int
    most: int


def bounds_of(objects: Iterable[Object]) -> Mapping[Target, Bounds]:
    """Bounds of the targets of all autoscalers among these objects."""
    return {
        _target(each): Bounds(integer(spec(each).get("minReplicas")) or 1, integer(spec(each).get("maxReplicas")))
        for each in objects
        if each.get("kind") == HORIZONTAL_POD_AUTOSCALERS.kind
    }


def _target(autoscaler: Object) -> Target:
    found = mapping_at(spec(autoscaler), "scaleTargetRef")
    name = Key(key(autoscaler).namespace, text(found.get("name")))
    return text(found.get("apiVersion")), text(found.get("kind")), name


def target_of(obj: Object) -> Target:
    """Identity of an object as a scale target."""
    return text(obj.get("apiVersion")), text(obj.get("kind")), key(obj)


def with_chosen_replicas(manifest: Object, live: Object, bounds: Bounds | None) -> Object:
    """Keep the replicas of the live object, within bounds. Args: bounds: None if no autoscaler scales it."""
    desired, chosen = (integer(at(each, *_REPLICAS)) for each in (manifest, live))
    if bounds is None or not desired or not chosen:
        return manifest
    replicas: Object = with_value(manifest, _REPLICAS, min(max(chosen, bounds.least), bounds.most))
    return replicas
