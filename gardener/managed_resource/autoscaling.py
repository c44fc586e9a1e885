"""Workloads with an autoscaler, which sets their replicas or resources.

Targets are object keys. VerticalPodAutoscalers do not count, since they change pods only. An autoscaler whose target
has an invalid apiVersion affects only itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gardener.managed_resource.equivalences import Equivalences
from kube.objects import Object, group_of, key, mapping, object_key, spec, text


@dataclass(frozen=True, slots=True)
class Scaled:
    """Object keys of the targets."""

    horizontally: frozenset[str] = frozenset()
    vertically: frozenset[str] = frozenset()


def scaled_by_hpa(autoscaler: Object) -> Scaled:
    return Scaled(horizontally=_target(autoscaler, "scaleTargetRef"))


def scaled_by_hvpa(autoscaler: Object) -> Scaled:
    target = _target(autoscaler, "targetRef")
    deployed = (mapping(spec(autoscaler).get(part)).get("deploy") is True for part in ("hpa", "vpa"))
    return Scaled(*(target if is_deployed else frozenset() for is_deployed in deployed))


def together(scaled: Iterable[Scaled]) -> Scaled:
    each = list(scaled)
    return Scaled(
        frozenset().union(*(one.horizontally for one in each)), frozenset().union(*(one.vertically for one in each))
    )


def list_error_text(kind: str, error: str) -> str:
    """Error text for a failed list; `kind` is `HPA` or `HVPA`."""
    return f"failed to compute all HPA and HVPA target ref object keys: failed to list all {kind}s: {error}"


def is_scaled(manifest: Object, targets: frozenset[str], equivalences: Equivalences) -> bool:
    """Whether an object, also under the name of an equivalent kind, is among the targets."""
    if not targets:
        return False
    own = group_of(manifest.get("apiVersion") or ""), manifest.get("kind") or ""
    names = key(manifest)
    return any(
        object_key(group, kind, names.namespace, names.name) in targets
        for group, kind in (own, *equivalences.others(*own))
    )


def _target(autoscaler: Object, field: str) -> frozenset[str]:
    """Object key of the target; empty if its apiVersion is invalid."""
    reference = mapping(spec(autoscaler).get(field))
    api_version = text(reference.get("apiVersion"))
    if api_version.count("/") > 1:
        import structlog  # only here: commands start without it

        structlog.get_logger().warning(
            "An autoscaler is ineffective, since the apiVersion of its target is invalid; correct it",
            object=f"{text(autoscaler.get('kind'))} {key(autoscaler)}",
            field=f"spec.{field}.apiVersion",
        )
        return frozenset()
    names = text(reference.get("kind")), key(autoscaler).namespace, text(reference.get("name"))
    return frozenset((object_key(group_of(api_version), *names),))
