"""Replicas of objects that an autoscaler scales: what it has chosen stays, within its bounds.

An object that is to have none, or has none, is not the autoscaler's: it has as many as it is desired to have.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kube.objects import Key, Object, integer, key, spec, text
from kube.paths import at, mapping_at, with_value
from kube.resources import HORIZONTAL_POD_AUTOSCALERS

_REPLICAS = ("spec", "replicas")

Target = tuple[str, str, Key]
"""apiVersion, kind and name of what is scaled."""


@dataclass(frozen=True, slots=True)
class Bounds:
    least: int
    most: int


def bounds_of(objects: Iterable[Object]) -> Mapping[Target, Bounds]:
    """Of what the autoscalers among these objects scale."""
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
    """By which an autoscaler names the object."""
    return text(obj.get("apiVersion")), text(obj.get("kind")), key(obj)


def with_chosen_replicas(manifest: Object, live: Object, bounds: Bounds | None) -> Object:
    """Args: bounds: None: no autoscaler scales it."""
    desired, chosen = (integer(at(each, *_REPLICAS)) for each in (manifest, live))
    if bounds is None or not desired or not chosen:
        return manifest
    replicas: Object = with_value(manifest, _REPLICAS, min(max(chosen, bounds.least), bounds.most))
    return replicas
