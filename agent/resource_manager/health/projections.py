"""State of a managed object in memory: its findings, and its ManagedResource.

Objects are checked when the watch delivers them, so that a store holds only the results. Most objects have no problem,
and all such objects of a ManagedResource share one value, as long as there are any.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

import structlog

from gardener.health.checks.registry import BUILT_IN, Rules
from gardener.health.checks.workload_pods import PodsWanted
from gardener.health.findings import (
    Finding,
    Reference,
    health_finding,
    manual_step,
    pods_of,
    pods_wanted,
    progress_finding,
)
from gardener.keys import ORIGIN
from gardener.responsibility import parse_origin, unexpected_origin
from kube.objects import Key, Object, annotations, key
from kube.resources import Resource
from kube.runtime.client import Form

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ObjectHealth:
    origin: Key | None = None
    """The ManagedResource that owns the object."""
    finding: Finding | None = None
    pods: PodsWanted | None = None
    """Pods that may explain the finding; without a finding, pods to count as well."""
    manual: str = ""
    """Manual step that its roll-out requires."""


NOTHING = ObjectHealth()
_LONGEST = 4096
"""Maximum characters of a message; more would not help, and would be kept for each object."""

Project = Callable[[Resource, Object], ObjectHealth]


def project_health(resource: Resource, obj: Object, *, cluster_id: str, rules: Rules = BUILT_IN) -> ObjectHealth:
    reference = reference_to(resource, obj)
    finding = health_finding(reference, obj, rules=rules)
    origin = _origin(resource, obj, cluster_id)
    return _fine(origin) if finding is None else ObjectHealth(origin, _clipped(finding), pods_of(reference, obj))


def health_form(resource: Resource, *, rules: Rules = BUILT_IN) -> Form:
    """Form in which objects of a kind are read for a health check."""
    return Form.WHOLE if rules.health(resource.api_version, resource.kind) else Form.METADATA


def project_progress(resource: Resource, obj: Object, *, cluster_id: str, rules: Rules = BUILT_IN) -> ObjectHealth:
    if progress_form(resource, rules=rules) is Form.METADATA:
        return NOTHING
    reference = reference_to(resource, obj)
    origin = _origin(resource, obj, cluster_id)
    finding = progress_finding(reference, obj, rules=rules)
    if finding is not None:
        return ObjectHealth(origin, _clipped(finding), pods_of(reference, obj))
    wanted, manual = pods_wanted(reference, obj), manual_step(reference, obj, rules=rules)
    return ObjectHealth(origin, None, wanted, manual) if wanted is not None or manual else _fine(origin)


def _clipped(finding: Finding | None) -> Finding | None:
    if finding is None or len(finding.message) <= _LONGEST:
        return finding
    return replace(finding, message=f"{finding.message[:_LONGEST]}…")


def progress_form(resource: Resource, *, rules: Rules = BUILT_IN) -> Form:
    """Form in which objects of a kind are read for a progress check."""
    return Form.WHOLE if rules.progress(resource.api_version, resource.kind) else Form.METADATA


def reference_to(resource: Resource, obj: Object) -> Reference:
    name = key(obj)
    return Reference(resource.api_version, resource.kind, name.namespace, name.name)


_FINE: WeakValueDictionary[Key | None, ObjectHealth] = WeakValueDictionary()


def _fine(origin: Key | None) -> ObjectHealth:
    kept = _FINE.get(origin)
    if kept is None:
        kept = _FINE[origin] = ObjectHealth(origin)
    return kept


def _origin(resource: Resource, obj: Object, cluster_id: str) -> Key | None:
    try:
        return origin(obj, cluster_id=cluster_id)
    except ValueError as error:
        name = f"{resource.kind} {key(obj)}"
        log.error("The ManagedResource of an object is unknown", object=name, error=str(error))
        return None


def origin(obj: Object, *, cluster_id: str) -> Key | None:
    """Return the ManagedResource that owns the object; None if there is none, or it is in another cluster.

    Raises:
        ValueError: the annotation is not `[<cluster id>:]<namespace>/<name>`.
    """
    text = annotations(obj).get(ORIGIN)
    if text is None:
        return None
    found = parse_origin(text)
    if ":" in found.key.namespace or not found.key.namespace or not found.key.name:
        raise unexpected_origin(text)
    return found.key if found.cluster_id == cluster_id else None
