"""Deployment, StatefulSet, DaemonSet, Job, CronJob: an autoscaler may own replicas and resources.

`kubectl rollout restart`, which writes into the pod template, must not be undone.
"""

from typing import Any

from kube.clock import parse_time
from kube.merge.options import MergeError, MergeOptions
from kube.objects import Object, metadata
from kube.paths import at, mapping_at, mappings_at, with_value

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"

_CLAIMS = ("spec", "volumeClaimTemplates")
_CRON_JOB_VERSIONS = ("batch/v1", "batch/v1beta1")
_LABELS = ("spec", "template", "metadata", "labels")
_SCALED = ("cpu", "memory")


def merge_deployment(result: Object, live: Object, options: MergeOptions) -> Object:
    if options.preserve_replicas or at(result, "spec", "replicas") is None:
        result = with_value(result, ("spec", "replicas"), at(live, "spec", "replicas"))
    return merge_pod_template(result, live, options)


def merge_stateful_set(result: Object, live: Object, options: MergeOptions) -> Object:
    """Merge like a Deployment; volume claim templates are immutable once the object exists."""
    if metadata(live).get("creationTimestamp"):
        result = with_value(result, _CLAIMS, at(live, *_CLAIMS))
    return merge_deployment(result, live, options)


def merge_job(result: Object, live: Object, options: MergeOptions) -> Object:
    """Keep selector and labels of the pod template that come from the API server: they are immutable."""
    result = with_value(result, ("spec", "selector"), at(live, "spec", "selector"))
    labels = {**mapping_at(live, *_LABELS), **mapping_at(result, *_LABELS)}
    if labels:
        result = with_value(result, _LABELS, labels)
    return merge_pod_template(result, live, options)


def merge_cron_job(result: Object, live: Object, options: MergeOptions) -> Object:
    """Merge the versions whose path to the pod template is known."""
    if result["apiVersion"] not in _CRON_JOB_VERSIONS:
        raise MergeError(f"cannot merge objects with gvk: {result['apiVersion']}, Kind=CronJob")
    return merge_pod_template(result, live, options, path=("spec", "jobTemplate", "spec", "template"))


def merge_pod_template(
    result: Object, live: Object, options: MergeOptions, *, path: tuple[str, ...] = ("spec", "template")
) -> Object:
    restarted = at(live, *path, "metadata", "annotations", RESTARTED_AT)
    if restarted is not None and not _is_later(at(result, *path, "metadata", "annotations", RESTARTED_AT), restarted):
        result = with_value(result, (*path, "metadata", "annotations", RESTARTED_AT), restarted)
    containers = at(result, *path, "spec", "containers")
    if options.preserve_resources and isinstance(containers, list):
        present = {_name(item): item for item in reversed(mappings_at(live, *path, "spec", "containers"))}
        merged = [_with_live_resources(item, present) for item in containers]
        result = with_value(result, (*path, "spec", "containers"), merged)
    return result


def _is_later(wanted: Any, present: Any) -> bool:
    """Whether the manifest requests a later restart than the live object."""
    try:
        return bool(parse_time(str(wanted)) > parse_time(str(present)))
    except ValueError:
        return False


def _name(container: Any) -> str:
    name = container.get("name") if isinstance(container, dict) else None
    return name if isinstance(name, str) else ""


def _with_live_resources(container: Any, present: dict[str, Object]) -> Any:
    name = _name(container)
    if not name or name not in present:
        return container
    for kind in ("requests", "limits"):
        for unit, value in mapping_at(present[name], "resources", kind).items():
            if unit in _SCALED:
                container = with_value(container, ("resources", kind, unit), value)
    return container
