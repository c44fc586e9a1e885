"""Which workloads are scaled by an autoscaler: their replicas or resources are not ours to set.

Targets are gathered once a pass as object keys. VerticalPodAutoscalers are not looked at, since they change pods only.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agent.managed_resource.equivalences import Equivalences
from agent.managed_resource.references import object_key
from kube.objects import Object, group_of, key, metadata

_FAILED = "failed to compute all HPA and HVPA target ref object keys"


class TargetReferenceError(ValueError):
    """An autoscaler names its target by something that is no apiVersion."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """Object keys of the targets."""

    horizontally: frozenset[str] = frozenset()
    vertically: frozenset[str] = frozenset()


def scaled_by(horizontal_pod_autoscalers: Iterable[Object], hvpas: Iterable[Object] = ()) -> Scaled:
    """Raises TargetReferenceError; nothing may be applied then, as it might scale down what runs."""
    horizontally: set[str] = set()
    vertically: set[str] = set()
    for autoscaler in horizontal_pod_autoscalers:
        horizontally.add(_target(autoscaler, "HorizontalPodAutoscaler", "scaleTargetRef"))
    for autoscaler in hvpas:
        target = _target(autoscaler, "Hvpa", "targetRef")
        if _deploys(autoscaler, "hpa"):
            horizontally.add(target)
        if _deploys(autoscaler, "vpa"):
            vertically.add(target)
    return Scaled(frozenset(horizontally), frozenset(vertically))


def list_error_text(kind: str, error: str) -> str:
    """Of a list that failed; `kind` is `HPA` or `HVPA`."""
    return f"{_FAILED}: failed to list all {kind}s: {error}"


def is_scaled(manifest: Object, targets: frozenset[str], equivalences: Equivalences) -> bool:
    """Whether an object, be it under the name of an equivalent kind, is among the targets."""
    if not targets:
        return False
    own = group_of(manifest.get("apiVersion") or ""), manifest.get("kind") or ""
    names = key(manifest)
    return any(
        object_key(group, kind, names.namespace, names.name) in targets
        for group, kind in (own, *equivalences.others(*own))
    )


def _target(autoscaler: Object, kind: str, field: str) -> str:
    reference = _mapping(_mapping(autoscaler.get("spec")).get(field))
    api_version = str(reference.get("apiVersion") or "")
    if api_version.count("/") > 1:
        raise TargetReferenceError(
            f"{_FAILED}: invalid API version in scaleTargetReference of {kind} '{key(autoscaler)}': "
            f"unexpected GroupVersion string: {api_version}"
        )
    return object_key(
        group_of(api_version),
        str(reference.get("kind") or ""),
        metadata(autoscaler).get("namespace") or "",
        str(reference.get("name") or ""),
    )


def _deploys(hvpa: Object, part: str) -> bool:
    return _mapping(_mapping(hvpa.get("spec")).get(part)).get("deploy") is True


def _mapping(value: Any) -> Object:
    return value if isinstance(value, dict) else {}
